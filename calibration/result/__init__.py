"""Results of calibrations and their files: the only part of `calibration` that simulators and nodes import.

A result has its parameters, their uncertainty, and the camera or robot that they belong to. The package needs numpy,
but not OpenCV.
"""

from calibration.result.camera import CameraIntrinsics
from calibration.result.camera_info import read_camera_info, write_camera_info
from calibration.result.file import load_intrinsics, load_result, save_result
from calibration.result.kinds import MOUNTINGS, Calibration, HandEye, Quality, SimulatedArm, TimeOffset, ToolWrench

__all__ = [
    "MOUNTINGS",
    "Calibration",
    "CameraIntrinsics",
    "HandEye",
    "Quality",
    "SimulatedArm",
    "TimeOffset",
    "ToolWrench",
    "load_intrinsics",
    "load_result",
    "read_camera_info",
    "save_result",
    "write_camera_info",
]
