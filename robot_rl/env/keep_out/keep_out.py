"""The arms of one cell never come closer than a keep-out: their set-points are moved back where they would.

Where two capsules are now, a plane between them keeps half of the gap for each. Both are convex, so as long as each
stays on its side, they cannot meet, whatever the other arm does meanwhile, and however late. So each set-point is held
to planes of its own: an arm that stands, lags, or does not answer changes nothing for the other one. An arm that moves
towards the plane is stopped earlier, by the way that it takes to brake.

It knows poses and shapes; it does not know tasks, actions or robots. It is no certified safety function.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robot_rl.env.keep_out.capsule import Capsule, capsule_distance, closest_points
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, rotvec_from_quat

_ROUNDS = 12
"""Projections onto planes and box, until all hold."""
_TURNS = (1.0, 0.5, 0.25)
"""Shares of the wanted turn that are tried before the arm does not turn."""
_CLOSE_ENOUGH = 1e-5
"""Distance by which a set-point may miss a plane [m]."""


@dataclass(frozen=True)
class KeepOutLimits:
    """How near and how far from each other the tools of two arms may be.

    Attributes:
        distance: Smallest distance between a capsule of one arm and one of another [m].
        tool_distance: Smallest and largest distance between the tcps of two arms [m].
        braking: Time in which a moving arm comes to rest, a control period included [s]; times its speed, it is the way
            that it needs for that.
        horizon: Distance between two capsules from which on they do not count in this step [m]; at least the way of
            both arms in a step.
    """

    distance: float = 0.02
    tool_distance: tuple[float, float] = (0.0, math.inf)
    braking: float = 0.15
    horizon: float = 0.2


@dataclass(frozen=True, eq=False)
class ArmShape:
    """What the keep-out has to know of an arm.

    Attributes:
        T_cell_base: Where its base stands, in a frame that all arms share.
        capsules: Its shape, fixed to its tcp.
    """

    T_cell_base: Pose
    capsules: tuple[Capsule, ...]


@dataclass(frozen=True, eq=False)
class ArmMotion:
    """An arm that is about to be sent to a set-point.

    Attributes:
        T_base_tcp: Where its tcp is.
        velocity: Of the tcp, base frame [m/s], shape (3,).
        T_base_target: Where it is wanted.
        confine: From a position to the nearest one in its workspace, base frame [m].
    """

    T_base_tcp: Pose
    velocity: np.ndarray
    T_base_target: Pose
    confine: Callable[[np.ndarray], np.ndarray]


class _Plane(NamedTuple):
    """The ends of a capsule have to satisfy `normal @ end >= least`."""

    normal: np.ndarray
    least: float
    capsule: Capsule


class KeepOut:
    """Set-points of several arms, moved back to where the arms keep their distance.

    Args:
        limits: How near and how far.
        arms: Shape and place of each arm, by name.
    """

    def __init__(self, limits: KeepOutLimits, arms: Mapping[str, ArmShape]) -> None:
        self._limits, self._arms = limits, dict(arms)
        self._pairs = list(itertools.combinations(self._arms, 2))
        reach = {
            name: max((math.hypot(*end) + c.radius for c in arm.capsules for end in (c.start, c.end)), default=0.0)
            for name, arm in self._arms.items()
        }
        self._far = {pair: sum(reach[name] for name in pair) + limits.horizon for pair in self._pairs}

    def distance(self, poses: Mapping[str, Pose]) -> float:
        """Return the smallest distance between two arms [m]; infinite with one.

        Args:
            poses: T_base_tcp of each arm.
        """
        placed = {name: self._arms[name].T_cell_base @ pose for name, pose in poses.items()}
        return min(
            (
                capsule_distance(ours, placed[a], theirs, placed[b])
                for a, b in self._pairs
                for ours in self._arms[a].capsules
                for theirs in self._arms[b].capsules
            ),
            default=math.inf,
        )

    def limit(self, motions: Mapping[str, ArmMotion]) -> dict[str, Pose]:
        """Return the set-point of each arm, moved back where it has to be.

        An arm for which no place is found is held where it is, and then all of them are.

        Args:
            motions: Where each arm is, and where it is wanted.
        """
        tools = {name: self._arms[name].T_cell_base @ motion.T_base_tcp for name, motion in motions.items()}
        planes = self._planes(motions, tools)
        if not any(planes.values()) and self._limits.tool_distance[1] == math.inf:
            return {name: motion.T_base_target for name, motion in motions.items()}
        wanted = self._drawn_together(motions)
        targets: dict[str, Pose] = {}
        for name, motion in motions.items():
            target = self._beyond(planes[name], name, motion, wanted[name])
            if target is None:
                return {
                    other: Pose(held.confine(held.T_base_tcp.position), held.T_base_tcp.quaternion)
                    for other, held in motions.items()
                }
            targets[name] = target
        return targets

    def _planes(self, motions: Mapping[str, ArmMotion], tools: Mapping[str, Pose]) -> dict[str, list[_Plane]]:
        """Return the planes that hold for each arm in this step, in the frame of the cell."""
        planes: dict[str, list[_Plane]] = {name: [] for name in motions}
        velocities = {
            name: quat_rotate(self._arms[name].T_cell_base.quaternion, motion.velocity)
            for name, motion in motions.items()
        }
        point, nearest = Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0), self._limits.tool_distance[0]
        for pair in self._pairs:
            a, b = pair
            if math.dist(tools[a].position.tolist(), tools[b].position.tolist()) > self._far[pair]:
                continue
            both = itertools.product(self._arms[a].capsules, self._arms[b].capsules)
            kept = [(ours, theirs, self._limits.distance) for ours, theirs in both]
            if nearest > 0.0:
                kept.append((point, point, nearest))
            for ours, theirs, distance in kept:
                self._split(pair, (ours, theirs), distance, tools, velocities, planes)
        return planes

    def _split(
        self,
        pair: tuple[str, str],
        capsules: tuple[Capsule, Capsule],
        distance: float,
        tools: Mapping[str, Pose],
        velocities: Mapping[str, np.ndarray],
        planes: dict[str, list[_Plane]],
    ) -> None:
        """Add the planes of both arms between two capsules that are near."""
        on_a, on_b = closest_points(*(c.at(tools[name]) for c, name in zip(capsules, pair, strict=True)))
        way = on_a - on_b
        length = float(np.linalg.norm(way))
        radii = capsules[0].radius, capsules[1].radius
        if length - sum(radii) > self._limits.horizon:
            return
        if length < 1e-9:  # the axes meet: apart along the line between the tools
            way = tools[pair[0]].position - tools[pair[1]].position
            length = float(np.linalg.norm(way)) or 1.0
        normal = way / length
        middle = 0.5 * float(normal @ (on_a + on_b)) + 0.5 * (radii[1] - radii[0])
        # Closer than that, pushed there or turned by an object: back further than to the border, as arms lag.
        lost = max(0.0, distance - (length - sum(radii)))
        for name, capsule, sign in zip(pair, capsules, (1.0, -1.0), strict=True):
            brake = self._limits.braking * max(0.0, -sign * float(normal @ velocities[name]))
            least = sign * middle + capsule.radius + 0.5 * distance + lost + brake
            planes[name].append(_Plane(sign * normal, least, capsule))

    def _drawn_together(self, motions: Mapping[str, ArmMotion]) -> dict[str, np.ndarray]:
        """Return the wanted positions, those of tools that would be too far apart moved towards each other."""
        wanted = {name: motion.T_base_target.position for name, motion in motions.items()}
        largest = self._limits.tool_distance[1]
        if largest == math.inf:
            return wanted
        for pair in self._pairs:
            placed = [self._arms[name].T_cell_base @ motions[name].T_base_target for name in pair]
            way = placed[0].position - placed[1].position
            excess = float(np.linalg.norm(way)) - largest
            if excess <= 0.0:
                continue
            step = 0.5 * excess * way / np.linalg.norm(way)
            for name, sign in zip(pair, (-1.0, 1.0), strict=True):
                turn = quat_conjugate(self._arms[name].T_cell_base.quaternion)
                wanted[name] = motions[name].confine(wanted[name] + sign * quat_rotate(turn, step))
        return wanted

    def _beyond(self, planes: list[_Plane], name: str, motion: ArmMotion, wanted: np.ndarray) -> Pose | None:
        """Return a set-point beyond all planes and in the workspace, near the wanted one; None where none was found."""
        if not planes:
            return Pose(wanted, motion.T_base_target.quaternion)
        T_cell_base = self._arms[name].T_cell_base
        to_base = quat_conjugate(T_cell_base.quaternion)
        here, turn = (
            motion.T_base_tcp,
            quat_multiply(quat_conjugate(motion.T_base_tcp.quaternion), motion.T_base_target.quaternion),
        )
        before = _reaches(planes, T_cell_base @ Pose(np.zeros(3), here.quaternion))
        now = [float(plane.normal @ quat_rotate(T_cell_base.quaternion, here.position)) for plane in planes]
        # How far it has turned when it gets there is not known: it has to be beyond as it is turned now, too. It only
        # turns as far as it could where it is.
        for share in _TURNS:
            attitude = quat_multiply(here.quaternion, quat_from_rotvec(share * rotvec_from_quat(turn)))
            after = _reaches(planes, T_cell_base @ Pose(np.zeros(3), attitude))
            if all(
                at + a >= min(plane.least, at + b) - _CLOSE_ENOUGH
                for plane, at, a, b in zip(planes, now, after, before, strict=True)
            ):
                break
        else:
            attitude, after = here.quaternion, before
        rows = [  # in the base frame: normal @ position >= least
            (quat_rotate(to_base, plane.normal), plane.least - min(a, b))
            for plane, a, b in zip(planes, after, before, strict=True)
        ]
        position = wanted
        for _ in range(_ROUNDS):
            moved = False
            for normal, least in rows:
                short = least - float(normal @ position)
                if short > _CLOSE_ENOUGH:
                    position, moved = position + short * normal, True
            if not moved:
                return Pose(position, attitude)
            position = motion.confine(position)
        return None


def _reaches(planes: list[_Plane], turned: Pose) -> list[float]:
    """Return how far towards each plane a capsule reaches from the tcp, with the tcp's frame at `turned`."""
    return [float((plane.capsule.at(turned) @ plane.normal).min()) for plane in planes]
