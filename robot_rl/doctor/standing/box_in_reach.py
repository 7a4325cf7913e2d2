"""Does the arm reach its whole box with the tool turned as it is? Where it does not, it stops short or stops itself.

An arm of servos goes as near as it can; the controller of an industrial one ends with a fault. Near the end of its
reach an arm is stretched: a small way of the tool takes a fast turn of its joints, and it overshoots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.kinematics.inverse import InverseKinematics, JointSolution
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.geometry import Pose

Box = tuple[Sequence[float], Sequence[float]]
"""Least and largest x, y, z of the tcp in the base frame [m]."""

NAME = "arm box"
STEP = 0.03
"""Of the way to a point of the box [m]: the joints of one step are those of the next, nearly."""
SHORT = 0.005
"""Distance to a point from which on it is not reached [m]."""
TURNED = 0.1
"""Turn of the tool from which on a pose is not reached, by an arm that could reach every orientation [rad]."""
STRETCHED = 10.0
"""How far a joint may turn for a way of the tool [rad/m]: at 0.25 m/s, 2.5 rad/s; about 3.5 in the midst of reach."""
HALVINGS = 5
"""To find the largest box that is in reach."""


@dataclass(frozen=True, eq=False)
class StandingTool:
    """Where an arm stands.

    Attributes:
        chain: Its kinematics.
        joints: Positions of its joints [rad], shape (n,).
        T_base_tcp: Pose of its tcp.
    """

    chain: Chain
    joints: np.ndarray
    T_base_tcp: Pose


def judge_box(tool: StandingTool, box: Box) -> CheckResult:
    """Judge the corners of a box, the middles of its edges and faces, and its centre.

    Args:
        tool: The arm.
        box: In which commands may be.
    """
    low, high = (np.array(edge, float) for edge in box)
    at = tool.T_base_tcp.position
    if np.any(at < low) or np.any(at > high):
        text = "the tcp stands outside of the box of the limits: commands hold until it is inside"
        return CheckResult(NAME, "note", text, cure="move the arm into it by hand, or correct box_low and box_high")
    reach = _Reach(tool)
    missed = list(reach.missed(low, high))
    if not missed:
        return CheckResult(NAME, "ok", "the arm reaches its box with the tool turned as it is now")
    worst = max(missed, key=lambda miss: miss.short)
    why = (
        f"up to {1e3 * worst.short:.0f} mm short, at {_numbers(worst.point)}" if worst.short > SHORT else "or stretched"
    )
    text = f"with the tool turned as it is now, {len(missed)} of 27 points of the box are out of reach, {why}"
    return CheckResult(NAME, "note", text, len(missed), "points", "none", _cure(reach, at, low, high))


@dataclass(frozen=True, eq=False)
class _Miss:
    point: np.ndarray
    short: float


class _Reach:
    """Finds points that an arm does not reach, from where it stands."""

    def __init__(self, tool: StandingTool) -> None:
        self._tool, self._kinematics = tool, InverseKinematics(tool.chain)
        self._T_tcp_end = tool.T_base_tcp.inverse() @ tool.chain.pose(tool.joints)  # of the chain, e.g. the flange

    def missed(self, low: np.ndarray, high: np.ndarray) -> Iterator[_Miss]:
        """Find what is not reached of corners, middles and centre of a box."""
        for point in product(*zip(low, 0.5 * (low + high), high, strict=True)):
            if (miss := self._go(np.array(point))) is not None:
                yield miss

    def _go(self, point: np.ndarray) -> _Miss | None:
        """Go straight to a point; return what is left if it is not reached."""
        tool, solution = self._tool, JointSolution(self._tool.joints, 0.0, 0.0)
        start = tool.T_base_tcp.position
        for share in np.linspace(0.0, 1.0, 2 + int(np.linalg.norm(point - start) / STEP))[1:]:
            target = Pose(start + share * (point - start), tool.T_base_tcp.quaternion) @ self._T_tcp_end
            solution = self._kinematics.solve(solution.position, target)
        complete = tool.chain.size >= 6
        if solution.distance > SHORT or (complete and (solution.angle > TURNED or self._stretched(solution.position))):
            return _Miss(point, solution.distance)
        return None

    def _stretched(self, joints: np.ndarray) -> bool:
        """Return whether to move the tool without turning it takes a fast turn of a joint."""
        _, J = self._tool.chain.pose_and_jacobian(joints)
        rates = np.linalg.pinv(J)[:, :3]  # of the joints, by the velocity of the tool
        return float(np.linalg.norm(rates, axis=1).max()) > STRETCHED


def _cure(reach: _Reach, at: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Propose the largest box in reach of those between the tcp, which is there, and this one."""
    least = most = at
    within, beyond = 0.0, 1.0  # shares of the box
    for _ in range(HALVINGS):
        share = 0.5 * (within + beyond)
        smaller = at + share * (low - at), at + share * (high - at)
        if any(reach.missed(*smaller)):
            beyond = share
        else:
            within, (least, most) = share, smaller
    if within == 0.0:
        return "stand the arm where it works, with the tool turned as it works, and examine again"
    return f"for example box_low: {_numbers(least)} and box_high: {_numbers(most)}"


def _numbers(point: np.ndarray) -> str:
    return f"[{', '.join(f'{value:.3f}' for value in point)}]"
