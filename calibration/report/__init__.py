"""Reports of calibrations, with pictures and a conclusion."""
