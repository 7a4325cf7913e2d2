"""The robot's contracts over ROS 2: thin nodes around the objects of `robot_rl`."""
