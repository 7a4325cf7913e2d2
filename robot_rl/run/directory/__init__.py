"""The files of a run: its directory, metrics, calibrations and pinned files."""
