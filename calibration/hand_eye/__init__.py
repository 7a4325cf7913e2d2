"""Hand-eye calibration: pose of a camera on the tool or beside the arm."""
