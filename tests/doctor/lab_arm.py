"""A package `lab` with the driver `standing`, found by its entry point, for this process and for programs."""

import os
from pathlib import Path

from packages import install_package

SUPPORT = Path(__file__).parent


def install_lab_arm(folder: Path) -> dict[str, str]:
    """Make the package in a folder; return the environment in which programs find it."""
    install_package(folder, "lab", {"robot_rl.arms": {"standing": "standing_arm:StandingArm"}})
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(SUPPORT)])}
