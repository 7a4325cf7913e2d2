"""Calibration: cameras, hand-eye poses, delays and wrench sensors, measured from data.

It turns pictures, poses and readings into files with errors attached. It knows neither ROS nor MuJoCo: nodes and
simulators feed it arrays and read `calibration.result`.
"""
