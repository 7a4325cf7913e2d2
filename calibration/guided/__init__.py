"""A calibration session on a live robot, step by step."""
