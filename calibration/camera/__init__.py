"""Calibration boards, detection of their corners, and intrinsics of cameras."""
