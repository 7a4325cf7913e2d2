"""Foreign formats: LeRobot datasets, ROS 2 bags, MP4 films."""
