"""False alarms and power of the test for a faulty sensor during a wrench calibration.

    python benchmarks/calibration_wrench.py --sensors 200

Each recording has 20 poses (8, 12 and 40, too, for false alarms) with 0.05 N and 0.003 Nm of noise, and a tool of
0.73 kg.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "calibration"))

import numpy as np
from motions import TRUTH, readings

from calibration.arm.wrench import calibrate_wrench
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose
from robot_rl.statistics import wilson_interval

KINDS: dict[str, dict[str, Any]] = {
    "sound, 8 poses": {"count": 8},
    "sound, 12 poses": {"count": 12},
    "sound, 20 poses": {},
    "sound, 40 poses": {"count": 40},
    "force drifts by 0.2 N": {"drift": 0.2},
    "force drifts by 1 N": {"drift": 1.0},
    "force jumps by 0.2 N": {"jump": 0.2},
    "force jumps by 1 N": {"jump": 1.0},
    "one axis, gain 1.05": {"gain": (1.05, 1.0, 1.0)},
    "one axis, gain 1.1": {"gain": (1.1, 1.0, 1.0)},
    "frame turned by 3 deg": {"turn": 3.0},
    "all axes, gain 1.02, weighed": {"gain": (1.02, 1.02, 1.02), "weighed": TRUTH.mass},
    "all axes, gain 1.05, weighed": {"gain": (1.05, 1.05, 1.05), "weighed": TRUTH.mass},
    "sound, weighed": {"weighed": TRUTH.mass},
}
"""Kinds of recordings."""


def is_refused(
    seed: int,
    count: int = 20,
    drift: float = 0.0,
    jump: float = 0.0,
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0),
    turn: float = 0.0,
    weighed: float | None = None,
) -> bool:
    """Return whether a fault is a reason to refuse a recording.

    Args:
        seed: Of the poses, the noise, and direction and moment of the fault.
        count: Number of poses.
        drift: Of the force's bias [N].
        jump: Of the force's bias, before a random pose [N].
        gain: Of the axes of the force.
        turn: Angle of the stated frame against the sensor's [deg].
        weighed: Mass of the tool [kg]; None if it was not weighed.
    """
    rotations, wrenches = readings(seed, count=count)
    rng = np.random.default_rng([seed, 5])
    way, axis = (v / np.linalg.norm(v) for v in rng.standard_normal((2, 3)))
    course = drift * np.linspace(0.0, 1.0, count) + jump * (np.arange(count) >= rng.integers(3, count - 2))
    wrenches[:, :3] = (wrenches[:, :3] + course[:, None] * way) * gain
    stated = rotations @ Pose.from_rotvec(np.zeros(3), np.radians(turn) * axis).matrix
    try:
        return not calibrate_wrench(stated, wrenches, "fr3", weighed=weighed).quality.good
    except CalibrationError as error:
        return " bias " in str(error) or "gain" in str(error) or "frame is turned" in str(error)


def main() -> None:
    """Print the share of refused recordings of each kind, with its 95 % interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sensors", type=int, default=200, help="recordings of each kind (default: 200)")
    arguments = parser.parse_args()
    for kind, options in KINDS.items():
        refused = sum(is_refused(seed, **options) for seed in range(30_000, 30_000 + arguments.sensors))
        interval = wilson_interval(refused, arguments.sensors)
        print(json.dumps({"kind": kind, "refused": refused, "of": arguments.sensors, "95 %": interval}), flush=True)


if __name__ == "__main__":
    main()
