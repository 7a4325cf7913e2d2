"""Kinematics of a chain of joints: pose, Jacobian, inverse. Numbers alone: no driver, bus, topic or task."""
