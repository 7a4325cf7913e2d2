"""Arms of LeRobot, in the interpreter in which LeRobot is installed."""
