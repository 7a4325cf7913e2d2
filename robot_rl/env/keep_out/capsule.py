"""Capsules, and the exact distance between two of them: that of their axes, which are segments, less both radii."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_rl.geometry import Pose, quat_rotate

_Point = tuple[float, float, float]
_SHORT = 1e-12
"""Square of a length below which a segment is a point [m^2]."""


@dataclass(frozen=True)
class Capsule:
    """All points within a radius of a segment, in the frame of what it is fixed to.

    Attributes:
        start: One end of the segment [m].
        end: Its other end [m]; the same makes it a ball.
        radius: [m].
    """

    start: _Point
    end: _Point
    radius: float

    def at(self, pose: Pose) -> np.ndarray:
        """Return both ends of the segment where the frame is at `pose`, shape (2, 3)."""
        ends = (quat_rotate(pose.quaternion, np.array(point)) for point in (self.start, self.end))
        return np.array([pose.position + end for end in ends])


def closest_points(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the point of each of two segments that is nearest to the other segment, shape (3,) each.

    The squared distance is a convex quadratic in the two positions along the segments; the minimum over the line of
    one segment is clamped to the segment, the other follows, and is clamped in turn (Ericson, Real-Time Collision
    Detection, 2005, 5.1.9).

    Args:
        a: The ends of one segment, shape (2, 3).
        b: The ends of the other, shape (2, 3).
    """
    way_a, way_b, between = a[1] - a[0], b[1] - b[0], a[0] - b[0]
    aa, bb, ab = float(way_a @ way_a), float(way_b @ way_b), float(way_a @ way_b)
    at_a, at_b = float(way_a @ between), float(way_b @ between)
    if aa <= _SHORT and bb <= _SHORT:
        return a[0], b[0]
    if aa <= _SHORT:
        return a[0], b[0] + _share(at_b / bb) * way_b
    if bb <= _SHORT:
        return a[0] + _share(-at_a / aa) * way_a, b[0]
    parallel = aa * bb - ab * ab
    s = _share((ab * at_b - at_a * bb) / parallel) if parallel > _SHORT * aa * bb else 0.0
    t = (ab * s + at_b) / bb
    if not 0.0 <= t <= 1.0:
        t = _share(t)
        s = _share((ab * t - at_a) / aa)
    return a[0] + s * way_a, b[0] + t * way_b


def capsule_distance(a: Capsule, T_a: Pose, b: Capsule, T_b: Pose) -> float:
    """Return the distance of two capsules with their frames at `T_a` and `T_b` [m]; below 0 they overlap."""
    on_a, on_b = closest_points(a.at(T_a), b.at(T_b))
    return math.dist(on_a.tolist(), on_b.tolist()) - a.radius - b.radius


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
