"""Reports of calibrations as HTML files."""
