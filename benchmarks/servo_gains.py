"""The control law of arms of servos on models that differ from the one at hand, without processes and clocks.

    PYTHONPATH=.:tests/support/peers python benchmarks/servo_gains.py

One line a model: stiffness and damping of the servos, delay from measurement to command, payload at the gripper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import so101_peer

from robot_rl.arm.joints.joint_controller import JointController
from robot_rl.arm.kinematics.inverse import InverseKinematics
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.geometry import Pose

CYCLE, POLICY = 0.01, 10
"""Of the driver [s]; cycles in a step of the policy."""
RADIAN = 2 * np.pi / so101_peer.TURN
CHAIN = so101_chain()


class Variant(NamedTuple):
    """A model."""

    stiffness: float = 1.0
    damping: float = 1.0
    delay: int = 1
    payload: float = 0.0


VARIANTS = [
    *(Variant(stiffness, damping) for stiffness in (0.5, 1.0, 2.0) for damping in (1.0, 2.0)),
    *(Variant(delay=delay) for delay in (2, 3)),
    *(Variant(payload=payload) for payload in (0.1, 0.2)),
    Variant(0.5, payload=0.2),
]


class Loop:
    """An arm and what drives it.

    Args:
        variant: The model.
    """

    def __init__(self, variant: Variant) -> None:
        self._body = so101_peer.So101Body(variant.payload)
        self._body.model.dof_damping[:] *= variant.damping
        self._stiffness = [variant.stiffness] * 6
        self._law = JointController(CHAIN.low, CHAIN.high, 1.5, 0.2, RADIAN, (0.4, 1.5))
        self._law.restart(so101_peer.START)
        self._commands = [so101_peer.START] * (variant.delay + 1)
        self._inverse = InverseKinematics(CHAIN)
        self.heights: list[float] = []

    def run(self, cycles: int) -> None:
        """Go on for some cycles."""
        for _ in range(cycles):
            velocity = np.round(self._body.velocity[:5]) * RADIAN
            measured = self._measured()
            _, J = CHAIN.pose_and_jacobian(measured)
            self._commands = [*self._commands[1:], self._law.step(measured, velocity, CYCLE, J)]
            goals = np.append(np.round(self._commands[0] / RADIAN + self._body.middle[:5]), 2100.0)
            self._body.step(CYCLE, goals, self._stiffness)
            self.heights.append(1e3 * float(self._body.data.site("tcp").xpos[2]))

    def act(self, up: float) -> float:
        """Set the measured pose plus a step up [m]; return the height of that [mm]."""
        here = CHAIN.pose(self._measured())
        target = Pose(here.position + np.array([0.0, 0.0, up]), here.quaternion)
        self._law.aim(self._inverse.solve(self._measured(), target).position)
        return 1e3 * float(target.position[2])

    def _measured(self) -> np.ndarray:
        return (np.round(self._body.position[:5]) - self._body.middle[:5]) * RADIAN


def main() -> None:
    """Print a table."""
    print("stiffness damping delay payload | 10 s of zero actions | 15 actions of 1 cm | 2 cm step: overshoot, to 1 mm")
    for variant in VARIANTS:
        loop = Loop(variant)
        loop.run(200)
        start = loop.heights[-1]
        for _ in range(100):
            loop.act(0.0)
            loop.run(POLICY)
        sink, start = loop.heights[-1] - start, loop.heights[-1]
        for _ in range(15):
            loop.act(0.01)
            loop.run(POLICY)
        followed = loop.heights[-1] - start
        for _ in range(10):
            loop.act(0.0)
            loop.run(POLICY)
        target, begin = loop.act(-0.02), len(loop.heights)
        loop.run(150)
        off = np.array(loop.heights[begin:]) - target
        far = np.flatnonzero(np.abs(off) > 1.0)
        print(
            f"{variant.stiffness:9g} {variant.damping:7g} {variant.delay:5d} {variant.payload:7g} | {sink:17.1f} mm | "
            f"{followed:15.0f} mm | {max(0.0, -off.min()):10.1f} mm, {CYCLE * (far[-1] + 1):.2f} s"
        )


if __name__ == "__main__":
    main()
