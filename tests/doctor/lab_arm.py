"""A package `lab` with the driver `standing`, found by its entry point, for this process and for programs."""

import os
from pathlib import Path

SUPPORT = Path(__file__).parent


def install_lab_arm(folder: Path) -> dict[str, str]:
    """Make the package in a folder; return the environment in which programs find it."""
    info = folder / "lab-0.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 0.0.0\n")
    (info / "entry_points.txt").write_text("[robot_rl.arms]\nstanding = standing_arm:StandingArm\n")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(SUPPORT)])}
