"""A real workcell in this process, from a robot file: arm, cameras and task, without ROS."""
