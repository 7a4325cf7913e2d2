"""A stand-in for LeRobot with the parts of its API (0.4.4) that robot_rl uses, and one scripted robot."""
