"""Guided calibration: advice after each frame, and a session with a live robot."""
