"""Steps of 1 cm, the size of one action, along each axis and back: lag, rise, overshoot, steady error, jitter."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.motion.response import Response, response
from robot_rl.commission.motion.trace import Trace
from robot_rl.env.robot_io import RobotState
from robot_rl.geometry import Pose

AXES = "xyz"
STEP = 0.01
"""[m]."""
BEFORE, AFTER = 0.5, 1.5
"""Time at rest before the step, and after it [s]."""
GIVE_UP = 0.03
"""Distance from the start at which the arm is stopped [m]."""


@dataclass(frozen=True)
class StepResponse(Response):
    """Of one step.

    Attributes:
        rise: Time from the step until 90 % of it [s]; NaN if it is never reached.
    """

    rise: float


def step_responses(
    arm: ArmUnderTrial, repeats: int, progress: Callable[[str], None] = lambda text: None, axes: Collection[str] = AXES
) -> tuple[dict[str, list[StepResponse]], dict[str, list[Trace]]]:
    """Make the steps; each goes there and back, and both count.

    Args:
        arm: The arm, in 3 cm of free space on all sides.
        repeats: There and back, for each axis.
        progress: Given a line before each axis.
        axes: Those along which it steps.

    Returns:
        By axis, the responses, and what was measured from `BEFORE` the step on.
    """
    responses: dict[str, list[StepResponse]] = {axis: [] for axis in axes}
    traces: dict[str, list[Trace]] = {axis: [] for axis in axes}
    for axis in axes:
        progress(f"{2 * repeats} steps of {1e3 * STEP:g} mm along {axis}")
        arm.come_to_rest()
        home = arm.io.read().T_base_tcp
        for _ in range(repeats):
            for sign in (1.0, -1.0):
                direction = sign * np.eye(3)[AXES.index(axis)]
                trace = _step(arm, home, direction)
                responses[axis].append(_response(trace, direction))
                traces[axis].append(trace)
    arm.io.stop()
    return responses, traces


def figures(responses: dict[str, list[StepResponse]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by axis and quantity, the median and the largest over the steps, in ms and mm; NaN is never."""
    names = {
        "lag": "lag_ms",
        "rise": "rise_ms",
        "overshoot": "overshoot_mm",
        "steady_error": "steady_error_mm",
        "jitter": "jitter_mm",
    }
    found: dict[str, dict[str, dict[str, float]]] = {}
    for axis, rows in responses.items():
        columns: dict[str, Any] = {name: np.array([asdict(row)[name] for row in rows]) * 1e3 for name in names}
        columns["rise"][np.isnan(columns["rise"])] = np.inf  # never: later than all others
        found[axis] = {
            names[name]: {"median": _rounded(np.median(column)), "largest": _rounded(column.max())}
            for name, column in columns.items()
        }
    return found


def _rounded(value: float) -> float:
    return round(float(value), 3) if value < np.inf else float("nan")


def _step(arm: ArmUnderTrial, home: Pose, direction: np.ndarray) -> Trace:
    """Step from `home` for a positive direction, and back to it for a negative one."""
    ends = (home.position, home.position + STEP * np.abs(direction))
    begin, end = ends if direction.sum() > 0 else ends[::-1]

    def set_point(state: RobotState, at: float) -> Pose:
        del state
        return Pose(begin if at < BEFORE else end, home.quaternion)

    return arm.play(
        set_point,
        BEFORE + AFTER,
        stop_when=lambda state: bool(np.linalg.norm(state.T_base_tcp.position - home.position) > GIVE_UP),
    )


def _response(trace: Trace, direction: np.ndarray) -> StepResponse:
    found = response(trace, direction, float(trace.seconds[-1]))
    along = trace.position @ direction
    begin, end = float(along[trace.window(0.8 * BEFORE, BEFORE)].mean()), float(trace.target[-1] @ direction)
    there = np.flatnonzero((trace.seconds > BEFORE) & (along >= begin + 0.9 * (end - begin)))
    rise = float(trace.seconds[there[0]]) - BEFORE if len(there) else float("nan")
    return StepResponse(found.lag, found.overshoot, found.steady_error, found.jitter, rise)
