"""How an arm answers a set-point: lag, overshoot, steady error, jitter, time until it stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_rl.commission.motion.trace import Trace

LAGS = np.arange(0.0, 1.0, 0.005)
"""Lags that are tried [s]."""
NEAR = 5e-4
"""An arm within this distance of where it ends counts as standing [m]."""
SETTLED = 0.3
"""Last part of a motion, in which it has settled [s]."""


@dataclass(frozen=True)
class Response:
    """Of a motion along one direction.

    Attributes:
        lag: Shift in time with which the set-points fit the positions best, by least squares [s].
        overshoot: How far the tcp went beyond the last set-point [m].
        steady_error: Distance from the last set-point at the end [m].
        jitter: Standard deviation of the position at the end, over all axes [m].
    """

    lag: float
    overshoot: float
    steady_error: float
    jitter: float


def response(trace: Trace, direction: np.ndarray, end: float) -> Response:
    """Return the response to a motion that ends at `end` [s] of a trace.

    Args:
        trace: What was commanded and measured.
        direction: Of the motion, of length 1. Shape (3,).
        end: When the set-point is left again [s].
    """
    used = trace.window(0.0, end) & np.isfinite(trace.target[:, 0])
    seconds, target, position = trace.seconds[used], trace.target[used] @ direction, trace.position[used] @ direction
    offset = position[0] - target[0]  # where it stood before; a steady error is no lag
    errors = [np.square(position - offset - np.interp(seconds - lag, seconds, target)).sum() for lag in LAGS]
    settled = trace.window(end - SETTLED, end)
    last = trace.target[used][-1]
    at_rest = trace.position[settled]
    return Response(
        float(LAGS[int(np.argmin(errors))]),
        max(0.0, float((position - target[-1]).max())),
        float(np.linalg.norm(at_rest.mean(axis=0) - last)),
        float(np.sqrt(at_rest.var(axis=0).sum())),
    )


def stands_after(trace: Trace, begin: float) -> tuple[float, float]:
    """Return when the arm stood after a time, and how far it went until then.

    Args:
        trace: What was measured.
        begin: From which time on it should stand [s].

    Returns:
        Time from `begin` on [s], infinite if it still moves in the end; and the distance [m].
    """
    after = trace.window(begin)
    seconds, position = trace.seconds[after], trace.position[after]
    final = position[seconds >= seconds[-1] - SETTLED]
    distances = np.linalg.norm(position - final.mean(axis=0), axis=1)
    way = float(np.linalg.norm(final.mean(axis=0) - position[0]))
    if np.linalg.norm(final[-1] - final[0]) > NEAR:
        return float("inf"), way
    moving = np.flatnonzero(distances > NEAR)
    return (float(seconds[moving[-1]] - begin) if len(moving) else 0.0), way
