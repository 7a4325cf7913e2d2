"""Episodes on disk: recording, recovery, verification, editing, overlays."""
