"""How an SO-101 is driven: sinking, following, steps and stops, against MuJoCo behind servos on a pseudo-terminal.

    PYTHONPATH=.:tests/support/peers python benchmarks/servo_arm.py [feetech|dynamixel]

The true pose of the tool is that of the physics, not what the driver reports. For comparison, `--plain` drives with the
set-point "inverse kinematics of measured pose plus action", without integration.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peer_process import PeerProcess

from robot_rl.arm.servo.servo_arm import So101, So101Config
from robot_rl.clock import WallClock
from robot_rl.geometry import Pose

PERIOD = 0.1
"""Of the policy [s]."""


class Host:
    """Runs the driver."""

    wall, max_age = WallClock(), 0.5

    def problem(self, text: str) -> None:
        """Print it."""
        print(text)


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="?", default="feetech")
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    link = Path(tempfile.mkdtemp()) / "tty"
    peer = PeerProcess("so101_peer.py", arguments.family, link)
    arm = So101(So101Config(port=str(link), servos=arguments.family, timeout=0.2), Host())
    poses: list[Pose] = []
    arm.start(lambda part, stamp, value: poses.append(value) if part == "pose" else None)
    if arguments.plain:
        _make_plain(arm)
    try:
        time.sleep(2.0)
        figures = measure(arm, lambda: poses[-1], lambda: np.array([float(x) for x in peer.tell("where").split()]))
        print(json.dumps({"family": arguments.family, "plain": arguments.plain} | figures, indent=2))
    finally:
        arm.close()
        peer.end()


def measure(arm: So101, pose: Callable[[], Pose], where: Callable[[], np.ndarray]) -> dict[str, Any]:
    """Return the figures [mm, s]."""
    start = where()
    for _ in range(100):
        arm.move_to(pose())
        time.sleep(PERIOD)
    sink = 1e3 * (where() - start)[2]

    start = where()
    for _ in range(20):
        here = pose()
        arm.move_to(Pose(here.position + np.array([0.0, 0.0, 0.01]), here.quaternion))
        time.sleep(PERIOD)
    followed = 1e3 * (where() - start)[2]
    arm.hold()
    before = where()
    time.sleep(0.3)
    after = where()
    time.sleep(0.7)
    coast, late = 1e3 * float(np.linalg.norm(after - before)), 1e3 * float(np.linalg.norm(where() - after))

    steps = [_step(arm, pose, where, np.array(way)) for way in ((0, 0, -0.02), (0, 0.02, 0), (0, -0.02, 0.02)) * 3]
    settle, overshoot, error = np.array(steps).T
    return {
        "sink over 10 s at zero actions [mm]": round(sink, 2),
        "followed of 200 mm in 2 s [mm]": round(followed, 1),
        "moved in the 0.3 s after hold, and in the 0.7 s after that [mm]": [round(coast, 2), round(late, 2)],
        "2 cm step: to within 1 mm, median and largest [s]": [
            round(float(np.median(settle)), 2),
            round(settle.max(), 2),
        ],
        "overshoot, largest [mm]": round(overshoot.max(), 2),
        "error after 1.5 s, largest [mm]": round(error.max(), 2),
    }


def _step(
    arm: So101, pose: Callable[[], Pose], where: Callable[[], np.ndarray], way: np.ndarray
) -> tuple[float, float, float]:
    here, start = pose(), where()
    arm.move_to(Pose(here.position + way, here.quaternion))
    begin, settle, overshoot = time.monotonic(), 0.0, 0.0
    while (elapsed := time.monotonic() - begin) < 1.5:
        time.sleep(0.01)
        moved = where() - start
        if np.linalg.norm(moved - way) > 1e-3:
            settle = elapsed
        overshoot = max(overshoot, 1e3 * (float(moved @ way) / float(np.linalg.norm(way)) - float(np.linalg.norm(way))))
    return settle, overshoot, 1e3 * float(np.linalg.norm(where() - start - way))


def _make_plain(arm: So101) -> None:
    """Take the integration out: the command is the target, rate-limited."""
    controller = arm._controller

    def step(measured: np.ndarray, velocity: np.ndarray, period: float) -> np.ndarray:
        if (target := controller._target) is not None:
            most = 1.5 * period
            controller.command = controller.command + np.clip(target - controller.command, -most, most)
        return controller.command

    controller.step = step  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
