"""A simulated calibration rig: board, lens and camera."""
