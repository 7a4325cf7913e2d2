"""Capsules, where two of them are nearest, and how near they may come.

Their axes are segments, and the distance of two capsules is that of their axes less both radii.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True)
class KeepOutLimits:
    """How near and how far from each other the tools of two arms may be.

    Attributes:
        distance: Smallest distance between a capsule of one arm and one of another [m].
        tool_distance: Smallest and largest distance between the tcps of two arms [m].
        braking: Time in which a moving arm comes to rest, a control period included [s]; times its speed, it is the way
            that it needs for that.
        slack: By how much arms miss their set-points on the way, e.g. pushed by an object [m]; set-points keep that
            much more distance.
        horizon: Distance between two capsules from which on they do not count in this step [m]; at least the way of
            both arms in a step.
    """

    distance: float = 0.02
    tool_distance: tuple[float, float] = (0.0, math.inf)
    braking: float = 0.15
    slack: float = 0.003
    horizon: float = 0.2


def axes_of(capsules: Sequence[Capsule]) -> np.ndarray:
    """Return both ends of the axis of each capsule [m], shape (N, 2, 3)."""
    return np.array([(capsule.start, capsule.end) for capsule in capsules]).reshape(-1, 2, 3)


def closest_points(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the point of each of two segments that is nearest to the other one, for N pairs, shape (N, 3) each.

    The squared distance is a convex quadratic in the two positions along the segments; the minimum over the line of
    one segment is clamped to the segment, the other follows, and is clamped in turn (Ericson, Real-Time Collision
    Detection, 2005, 5.1.9).

    Args:
        a: The ends of the first segments, shape (N, 2, 3).
        b: The ends of the second ones, shape (N, 2, 3).
    """
    start_a, start_b = a[:, 0], b[:, 0]
    way_a, way_b, between = a[:, 1] - start_a, b[:, 1] - start_b, start_a - start_b
    aa, bb, ab = (way_a * way_a).sum(1), (way_b * way_b).sum(1), (way_a * way_b).sum(1)
    at_a, at_b = (way_a * between).sum(1), (way_b * between).sum(1)
    square = aa * bb - ab * ab  # 0 where they are parallel, or one is a point
    oblique = square > _SHORT * aa * bb
    s = np.clip(np.where(oblique, ab * at_b - at_a * bb, 0.0) / np.where(oblique, square, 1.0), 0.0, 1.0)
    long_a, long_b = aa > _SHORT, bb > _SHORT
    t = np.where(long_b, ab * s + at_b, 0.0) / np.where(long_b, bb, 1.0)
    clamped = np.clip(t, 0.0, 1.0)
    again = np.clip(np.where(long_a, ab * clamped - at_a, 0.0) / np.where(long_a, aa, 1.0), 0.0, 1.0)
    s = np.where((t != clamped) | ~long_b, again, s)
    return start_a + s[:, None] * way_a, start_b + clamped[:, None] * way_b
