"""The robot's contracts over ROS 2: thin nodes around the objects of `robot_rl`."""

from robot_rl.system.sister_packages import check_sister

PART_OF = "robot_rl"
"""Mark: see `robot_rl.system.sister_packages`."""

check_sister("calibration")  # whose results are read here
