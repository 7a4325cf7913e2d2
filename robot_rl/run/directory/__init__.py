"""What a run keeps on disk: its directory, metrics, calibrations and pinned files."""
