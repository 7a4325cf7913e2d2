"""Calibration with motions of the arm: delay of a camera, wrench sensor, friction and stiffness."""
