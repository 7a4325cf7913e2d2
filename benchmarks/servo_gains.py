"""The control law of arms of servos on models that differ from the one at hand, without processes and clocks.

    PYTHONPATH=.:tests/support/peers python benchmarks/servo_gains.py

One line a model: stiffness and damping of the servos, delay from measurement to command and its random part, period,
payload at the gripper. At 20 ms, velocities are differences of positions, as the driver `lerobot` makes them. The last
columns are of a policy that acts on what it saw 50 ms ago, as in a training: at random, at most 60 mm from the start.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import so101_peer

from robot_rl.arm.joints.joint_controller import JointController
from robot_rl.arm.kinematics.inverse import InverseKinematics
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.arm.lerobot.lerobot_arm import VELOCITY_TIME
from robot_rl.geometry import Pose

POLICY = 0.1
"""Time between two actions [s]."""
REACTION = 0.05
"""From an observation to the action that follows from it [s]."""
REACH, ACTION = 0.06, 0.01
"""How far from its start the policy goes, and its largest action [m]."""
TICK = 0.001
"""Of the simulated time [s]."""
RADIAN = 2 * np.pi / so101_peer.TURN
CHAIN = so101_chain()


class Variant(NamedTuple):
    """A model; delays and the period are in seconds, the payload in kg."""

    stiffness: float = 1.0
    damping: float = 1.0
    delay: float = 0.01
    payload: float = 0.0
    period: float = 0.01
    jitter: float = 0.0


VARIANTS = [
    *(Variant(stiffness, damping) for stiffness in (0.5, 1.0, 2.0) for damping in (1.0, 2.0)),
    *(Variant(delay=delay) for delay in (0.02, 0.03)),
    *(Variant(payload=payload) for payload in (0.1, 0.2)),
    Variant(0.5, payload=0.2),
    *(
        Variant(stiffness, delay=delay, period=0.02, jitter=jitter)
        for stiffness in (1.0, 2.0)
        for delay, jitter in ((0.003, 0.0), (0.02, 0.0), (0.003, 0.01), (0.003, 0.02), (0.003, 0.04))
    ),
]


class Loop:
    """An arm and what drives it.

    Args:
        variant: The model.
    """

    def __init__(self, variant: Variant) -> None:
        self._variant, self._random = variant, np.random.default_rng(0)
        self._body = so101_peer.So101Body(variant.payload)
        self._body.model.dof_damping[:] *= variant.damping
        self._stiffness = [variant.stiffness] * 6
        self._law = JointController(CHAIN.low, CHAIN.high, 1.5, 0.2, RADIAN, (0.4, 1.5))
        self._law.restart(so101_peer.START)
        self._underway: list[tuple[float, np.ndarray]] = []  # when a command arrives, and which
        self._command = so101_peer.START
        self._inverse = InverseKinematics(CHAIN)
        self._time = self._next = 0.0
        self._measured, self._velocity = self._positions(), np.zeros(5)
        self.path: list[np.ndarray] = []
        """Of the tcp, one a tick [mm], shape (3,)."""

    def run(self, seconds: float) -> None:
        """Go on."""
        for _ in range(round(seconds / TICK)):
            if self._time >= self._next:
                self._cycle()
            while self._underway and self._underway[0][0] <= self._time:
                self._command = self._underway.pop(0)[1]
            goals = np.append(np.round(self._command / RADIAN + self._body.middle[:5]), 2100.0)
            self._body.step(TICK, goals, self._stiffness)
            self._time += TICK
            self.path.append(1e3 * self._body.data.site("tcp").xpos)

    @property
    def height(self) -> float:
        """Of the tcp [mm]."""
        return float(self.path[-1][2])

    def act(self, up: float) -> float:
        """Set the measured pose plus a step up [m]; return the height of that [mm]."""
        here = CHAIN.pose(self._measured)
        target = Pose(here.position + np.array([0.0, 0.0, up]), here.quaternion)
        self._law.aim(self._inverse.solve(self._measured, target).position)
        return 1e3 * float(target.position[2])

    def play(self, actions: np.ndarray) -> np.ndarray:
        """Act on the pose of `REACTION` ago; actions are in metres, shape (n, 3). Return the path [mm]."""
        begin, home = len(self.path), CHAIN.pose(self._measured)
        for action in actions:
            seen = CHAIN.pose(self._measured)
            self.run(REACTION)
            target = np.clip(seen.position + action, home.position - REACH, home.position + REACH)
            self._law.aim(self._inverse.solve(self._measured, Pose(target, home.quaternion)).position)
            self.run(POLICY - REACTION)
        return np.array(self.path[begin:])

    def _cycle(self) -> None:
        """Measure and command; the next cycle begins after the period, or when this one's command has arrived."""
        variant, before = self._variant, self._measured
        self._measured = self._positions()
        if variant.period > 0.01:
            share = 1.0 - math.exp(-variant.period / VELOCITY_TIME)
            self._velocity = self._velocity + share * ((self._measured - before) / variant.period - self._velocity)
        else:
            self._velocity = np.round(self._body.velocity[:5]) * RADIAN
        _, J = CHAIN.pose_and_jacobian(self._measured)
        arrives = self._time + variant.delay + self._random.exponential(variant.jitter)
        self._underway.append((arrives, self._law.step(self._measured, self._velocity, variant.period, J)))
        self._next += variant.period
        if variant.jitter:
            self._next = max(self._next, arrives)

    def _positions(self) -> np.ndarray:
        return (np.round(self._body.position[:5]) - self._body.middle[:5]) * RADIAN


def main() -> None:
    """Print a table."""
    print(
        "stiffness damping delay jitter period payload | 10 s of zero actions | 15 actions of 1 cm | "
        "2 cm step: overshoot, to 1 mm, sways by | policy: speed p99, largest | then zero actions: sways by"
    )
    for variant in VARIANTS:
        loop = Loop(variant)
        loop.run(2.0)
        start = loop.height
        for _ in range(100):
            loop.act(0.0)
            loop.run(POLICY)
        sink, start = loop.height - start, loop.height
        for _ in range(15):
            loop.act(0.01)
            loop.run(POLICY)
        followed = loop.height - start
        for _ in range(10):
            loop.act(0.0)
            loop.run(POLICY)
        target, begin = loop.act(-0.02), len(loop.path)
        loop.run(4.0)
        off = np.array(loop.path[begin:])[:, 2] - target
        far = np.flatnonzero(np.abs(off) > 1.0)
        speed, largest, sway = of_policy(Loop(variant))
        s, d, delay, payload, period, jitter = variant
        print(
            f"{s:9g} {d:7g} {1e3 * delay:5g} {1e3 * jitter:6g} {1e3 * period:6g} {payload:7g} | {sink:17.1f} mm | "
            f"{followed:15.0f} mm | {max(0.0, -off[:1500].min()):10.1f} mm, {TICK * (far[-1] + 1):.2f} s, "
            f"{np.ptp(off[-2000:]):.1f} mm | {speed:15.2f}, {largest:.2f} m/s | {sway:.1f} mm"
        )


def of_policy(loop: Loop) -> tuple[float, float, float]:
    """Return the 99th percentile and the largest of the speed at random actions [m/s], and the sway afterwards [mm]."""
    loop.run(1.0)
    path = loop.play(np.random.default_rng(0).choice([-ACTION, ACTION], (200, 3)))
    speed = np.linalg.norm(path[10:] - path[:-10], axis=1) / (1e3 * 10 * TICK)
    rest = loop.play(np.zeros((30, 3)))[-round(1.0 / TICK) :]
    return float(np.percentile(speed, 99)), float(speed.max()), float(np.ptp(rest, axis=0).max())


if __name__ == "__main__":
    main()
