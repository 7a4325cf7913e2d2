"""Drivers of arms over ROS topics."""
