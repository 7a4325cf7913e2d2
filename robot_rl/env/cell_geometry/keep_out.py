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

from robot_rl.env.cell_geometry.capsule import Capsule, KeepOutLimits, axes_of, closest_points
from robot_rl.geometry import (
    Pose,
    quat_conjugate,
    quat_from_rotvec,
    quat_multiply,
    quat_rotate,
    quat_to_matrix,
    rotvec_from_quat,
)

_ROUNDS = 60
"""Projections onto planes and box, until all hold."""
_TURNS = (1.0, 0.5, 0.25, 0.0)
"""Shares of the wanted turn that are tried."""
_CLOSE_ENOUGH = 1e-5
"""Distance by which a set-point may miss a plane [m]."""


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


class _Planes(NamedTuple):
    """The ends of N axes have to satisfy `normal @ end >= least`; in the frame of the cell."""

    normals: np.ndarray
    """Shape (N, 3)."""
    least: np.ndarray
    """[m], shape (N,)."""
    axes: np.ndarray
    """In the tcp frame [m], shape (N, 2, 3)."""

    def reach(self, attitude: np.ndarray) -> np.ndarray:
        """Return the lowest of `normal @ end`, seen from the tcp, which is turned by a quaternion; shape (N,) [m]."""
        ends = self.axes @ quat_to_matrix(attitude).T
        lowest: np.ndarray = (ends @ self.normals[:, :, None])[..., 0].min(axis=1)
        return lowest


class KeepOut:
    """Set-points of several arms, moved back to where the arms keep their distance.

    Args:
        limits: How near and how far.
        arms: Shape and place of each arm, by name.
    """

    def __init__(self, limits: KeepOutLimits, arms: Mapping[str, ArmShape]) -> None:
        self._limits = limits
        self._bases = {name: arm.T_cell_base for name, arm in arms.items()}
        tcp = Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0)  # what is kept apart last is the tools themselves
        self._axes = {name: axes_of([*arm.capsules, tcp]) for name, arm in arms.items()}
        radii = {name: np.array([c.radius for c in (*arm.capsules, tcp)]) for name, arm in arms.items()}
        reach = {
            name: max((math.hypot(*end) + c.radius for c in arm.capsules for end in (c.start, c.end)), default=0.0)
            for name, arm in arms.items()
        }
        self._pairs = list(itertools.combinations(arms, 2))
        self._far = {pair: sum(reach[name] for name in pair) + limits.horizon for pair in self._pairs}
        self._kept = {}  # for each pair: numbers of the capsules, their radii, and the distance that they keep
        for a, b in self._pairs:
            last_a, last_b = len(radii[a]) - 1, len(radii[b]) - 1
            both = [*itertools.product(range(last_a), range(last_b)), (last_a, last_b)]
            one, other = np.array(both, int).T
            distance = np.array([limits.distance] * (len(both) - 1) + [limits.tool_distance[0]])
            self._kept[a, b] = one, other, radii[a][one], radii[b][other], distance

    def distance(self, poses: Mapping[str, Pose]) -> float:
        """Return the smallest distance between capsules of two arms [m]; infinite with one; below 0 they overlap.

        Args:
            poses: T_base_tcp of each arm.
        """
        placed = {name: self._bases[name] @ pose for name, pose in poses.items()}
        smallest = math.inf
        for pair in self._pairs:
            gaps = self._nearest(pair, placed)[2][:-1]
            smallest = min(smallest, float(gaps.min(initial=math.inf)))
        return smallest

    def limit(self, motions: Mapping[str, ArmMotion]) -> dict[str, Pose]:
        """Return the set-point of each arm, moved back where it has to be.

        An arm for which no place is found is held where it is, and then all of them are, but for those that go away
        from the others: else nobody could make room for it.

        Args:
            motions: Where each arm is, and where it is wanted.
        """
        tools = {name: self._bases[name] @ motion.T_base_tcp for name, motion in motions.items()}
        planes = self._planes(motions, tools)
        wanted = self._drawn_together(motions)
        found = {
            name: self._beyond(planes[name], self._bases[name], motion, wanted[name])
            for name, motion in motions.items()
        }
        targets = {name: target for name, target in found.items() if target is not None}
        if len(targets) == len(motions):
            return targets
        return {name: self._held(planes[name], self._bases[name], m, targets.get(name)) for name, m in motions.items()}

    def _nearest(
        self, pair: tuple[str, str], placed: Mapping[str, Pose]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the nearest points of the axes that two arms keep apart, (N, 3) each, their gaps, and their ways."""
        one, other, radii_a, radii_b, _ = self._kept[pair]
        axes = []
        for name, numbers in zip(pair, (one, other), strict=True):
            ends = placed[name].position + self._axes[name] @ placed[name].matrix.T
            axes.append(ends[numbers])
        on_a, on_b = closest_points(*axes)
        way = on_a - on_b
        return on_a, on_b, np.sqrt((way * way).sum(1)) - radii_a - radii_b, way

    def _planes(self, motions: Mapping[str, ArmMotion], tools: Mapping[str, Pose]) -> dict[str, list[_Planes]]:
        """Return the planes that hold for each arm in this step."""
        planes: dict[str, list[_Planes]] = {name: [] for name in motions}
        for pair in self._pairs:
            a, b = pair
            apart = tools[a].position - tools[b].position
            if math.hypot(*apart.tolist()) > self._far[pair]:
                continue
            one, other, radii_a, radii_b, distance = self._kept[pair]
            on_a, on_b, gaps, way = self._nearest(pair, tools)
            near = gaps <= self._limits.horizon
            length = (gaps + radii_a + radii_b)[:, None]
            met = length < 1e-9  # the axes meet: apart along the line between the tools
            normals = np.where(met, apart / (np.linalg.norm(apart) or 1.0), way / np.where(met, 1.0, length))
            middle = 0.5 * ((normals * (on_a + on_b)).sum(1) + radii_b - radii_a)
            # Closer than that, pushed there or turned by an object: back further than to the border, as arms lag.
            kept = 0.5 * (distance + self._limits.slack) + np.maximum(0.0, distance - gaps)
            for name, numbers, radii, sign in ((a, one, radii_a, 1.0), (b, other, radii_b, -1.0)):
                velocity = quat_rotate(self._bases[name].quaternion, motions[name].velocity)
                towards = sign * normals
                brake = self._limits.braking * np.maximum(0.0, -(towards @ velocity))
                least = sign * middle + radii + kept + brake
                planes[name].append(_Planes(towards[near], least[near], self._axes[name][numbers][near]))
        return planes

    def _drawn_together(self, motions: Mapping[str, ArmMotion]) -> dict[str, np.ndarray]:
        """Return the wanted positions, those of tools that would be too far apart moved towards each other."""
        wanted = {name: motion.T_base_target.position for name, motion in motions.items()}
        largest = self._limits.tool_distance[1]
        if largest == math.inf:
            return wanted
        for pair in self._pairs:
            placed = [self._bases[name] @ motions[name].T_base_target for name in pair]
            way = placed[0].position - placed[1].position
            excess = float(np.linalg.norm(way)) - largest
            if excess <= 0.0:
                continue
            step = 0.5 * excess * way / np.linalg.norm(way)
            for name, sign in zip(pair, (-1.0, 1.0), strict=True):
                turn = quat_conjugate(self._bases[name].quaternion)
                wanted[name] = motions[name].confine(wanted[name] + sign * quat_rotate(turn, step))
        return wanted

    def _beyond(self, found: list[_Planes], base: Pose, motion: ArmMotion, wanted: np.ndarray) -> Pose | None:
        """Return a set-point beyond all planes and in the workspace, near the wanted one; None where none was found."""
        target, here = motion.T_base_target, motion.T_base_tcp
        if not found:
            return Pose(wanted, target.quaternion)
        planes = _Planes(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        normals = planes.normals @ base.matrix  # in the base frame
        least = planes.least - planes.normals @ base.position
        before = planes.reach(quat_multiply(base.quaternion, here.quaternion))
        # It only turns as far as it could where it is. How far it has turned when it gets there is not known, so it has
        # to be beyond the planes as it is turned now, too.
        now = np.minimum(least, normals @ here.position + before) - normals @ here.position - _CLOSE_ENOUGH
        attitude, after = target.quaternion, before
        turn = rotvec_from_quat(quat_multiply(quat_conjugate(here.quaternion), target.quaternion))
        for share in _TURNS:
            if share < 1.0:
                attitude = quat_multiply(here.quaternion, quat_from_rotvec(share * turn))
            after = planes.reach(quat_multiply(base.quaternion, attitude))
            if (after >= now).all():
                break
        least = least - np.minimum(before, after)
        position = wanted
        for _ in range(_ROUNDS):
            short = least - normals @ position
            most = int(short.argmax()) if len(short) else -1
            if most >= 0 and short[most] > _CLOSE_ENOUGH:
                position = position + short[most] * normals[most]
                continue
            confined = motion.confine(position)
            if np.abs(confined - position).max() <= _CLOSE_ENOUGH:
                return Pose(confined, attitude)
            position = confined
        return None

    def _held(self, found: list[_Planes], base: Pose, motion: ArmMotion, target: Pose | None) -> Pose:
        """Return where an arm holds while one has no place: where it is, unless its own place is further away.

        Outside its workspace it comes in only where that brings it nearer to no other arm.
        """
        here = motion.T_base_tcp
        confined = Pose(motion.confine(here.position), here.quaternion)
        away = np.concatenate([planes.normals for planes in found]) if found else np.zeros((0, 3))

        def gained(pose: Pose) -> np.ndarray:
            return away @ quat_rotate(base.quaternion, pose.position - here.position)

        if target is not None:
            gains = gained(target)
            if gains.max(initial=0.0) > _CLOSE_ENOUGH and gains.min(initial=0.0) >= -_CLOSE_ENOUGH:
                return target
        return confined if gained(confined).min(initial=0.0) >= -_CLOSE_ENOUGH else here
