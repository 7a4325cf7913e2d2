"""Servos on a serial bus: lines, packets, registers, calibration. They know no kinematics and no tasks."""
