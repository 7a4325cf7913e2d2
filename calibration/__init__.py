"""Calibration: cameras, hand-eye poses, delays and wrench sensors, measured from data.

The package turns pictures, poses and sensor readings into result files with uncertainties. It imports neither ROS nor
MuJoCo: nodes and simulators pass arrays to it and read `calibration.result`.
"""

PART_OF = "robot_rl"
"""Mark: see `robot_rl.system.sister_packages`."""
