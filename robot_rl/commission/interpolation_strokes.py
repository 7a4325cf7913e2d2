"""Strokes as a policy makes them: which interpolation of set-points moves an arm most smoothly, and what it costs.

Ten times a second the set-point is the measured position plus the same action, as a policy has it. A stiff arm goes
there at once and waits for the next one: it stops and goes. With interpolation it moves on, and makes less of each
action before the next is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from robot_rl.arm.set_point.set_point_path import INTERPOLATIONS, Interpolation
from robot_rl.commission.motion.arm_under_trial import PERIOD, ArmUnderTrial
from robot_rl.commission.motion.trace import Trace
from robot_rl.env.robot_io import RobotState
from robot_rl.errors import RobotLostError
from robot_rl.geometry import Pose

AXES = "xyz"
ACTION, STEPS = 4.5e-3, 6
"""What a step asks for [m], and how many there are."""
STEADY = 2
"""Steps after which the speed is steady."""
REST = 0.6
"""Time at the last set-point [s]."""
GIVE_UP = 0.03
"""Distance from the start at which the arm is stopped [m]."""
SLOWEST, WORTH = 0.75, 1e-4
"""Another interpolation than `none` is the best only if it makes this share of the way that `none` makes, and has a
ripple that is less by this [m]."""


@dataclass(frozen=True)
class Stroke:
    """What one stroke was like.

    Attributes:
        ripple: Root mean square of the distance from a motion at the same mean speed [m].
        made: Share of each action that is made before the next one.
        overshoot: How far the tcp went beyond the last set-point [m].
    """

    ripple: float
    made: float
    overshoot: float


def interpolation_strokes(
    arm: ArmUnderTrial, repeats: int, progress: Callable[[str], None] = lambda text: None, axes: Collection[str] = AXES
) -> dict[Interpolation, list[Stroke]]:
    """Make strokes along each axis, there and back, with every interpolation.

    Args:
        arm: The arm, in 3 cm of free space on all sides.
        repeats: There and back, for each axis and interpolation.
        progress: Given a line before each interpolation.
        axes: Those along which it moves.

    Raises:
        RobotLostError: if the tool leaves its room; it has been stopped.
    """
    strokes: dict[Interpolation, list[Stroke]] = {kind: [] for kind in INTERPOLATIONS}
    home = arm.io.read().T_base_tcp
    for kind in INTERPOLATIONS:
        arm.interpolate(kind)
        progress(f"{2 * len(axes) * repeats} strokes with interpolation {kind}")
        for direction in np.eye(3)[[AXES.index(axis) for axis in axes]]:
            for sign in [1.0, -1.0] * repeats:
                arm.come_to_rest()
                strokes[kind].append(_stroke(arm, home, sign * direction))
    arm.io.stop()
    return strokes


def stroke_figures(strokes: Mapping[Interpolation, list[Stroke]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by interpolation and quantity, the median and the largest over the strokes; shares, and mm."""
    units = {"ripple": ("ripple_mm", 1e3), "made": ("made", 1.0), "overshoot": ("overshoot_mm", 1e3)}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind, rows in strokes.items():
        columns = {units[name][0]: units[name][1] * np.array([getattr(row, name) for row in rows]) for name in units}
        found[kind] = {
            name: {"median": round(float(np.median(column)), 3), "largest": round(float(column.max()), 3)}
            for name, column in columns.items()
        }
    return found


def best_interpolation(strokes: Mapping[Interpolation, list[Stroke]]) -> Interpolation:
    """Return the one of least ripple that makes `SLOWEST` of the way of `none`; `none` where that is not `WORTH` it."""
    made, ripple = (
        {kind: float(np.median([getattr(one, name) for one in rows])) for kind, rows in strokes.items()}
        for name in ("made", "ripple")
    )
    smoothest = min((kind for kind in strokes if made[kind] >= SLOWEST * made["none"]), key=lambda kind: ripple[kind])
    return smoothest if ripple["none"] - ripple[smoothest] >= WORTH else "none"


def _stroke(arm: ArmUnderTrial, home: Pose, direction: np.ndarray) -> Stroke:
    begin = arm.io.read().T_base_tcp.position
    last = begin

    def set_point(state: RobotState, at: float) -> Pose:
        nonlocal last
        if at < (STEPS - 0.5) * PERIOD:
            along = float((state.T_base_tcp.position - begin) @ direction)
            last = begin + (along + ACTION) * direction
        return Pose(last, home.quaternion)

    trace = arm.play(
        set_point,
        STEPS * PERIOD + REST,
        stop_when=lambda state: bool(np.linalg.norm(state.T_base_tcp.position - home.position) > GIVE_UP),
    )
    if trace.seconds[-1] < STEPS * PERIOD:
        raise RobotLostError(
            f"the tool went {1e3 * GIVE_UP:g} mm from where it stood and was stopped; does the arm follow small "
            "set-points? `robot-rl commission ROBOT --move --only axes` shows it"
        )
    return _judge(trace, direction)


def _judge(trace: Trace, direction: np.ndarray) -> Stroke:
    along = trace.position @ direction
    steady = trace.window(STEADY * PERIOD, STEPS * PERIOD)
    seconds, way = trace.seconds[steady], along[steady]
    speed, offset = np.polyfit(seconds, way, 1)
    return Stroke(
        float(np.sqrt(np.square(way - speed * seconds - offset).mean())),
        float(speed * PERIOD / ACTION),
        max(0.0, float((along - trace.target[-1] @ direction).max())),
    )
