"""1 cm along each axis and back: does the arm go where it is sent, how late, and how exactly?"""

from __future__ import annotations

import numpy as np

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial, along_line
from robot_rl.commission.motion.response import SETTLED, Response, response
from robot_rl.commission.motion.trace import Trace
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.contract.result import CheckResult, judged
from robot_rl.env.robot_io import RobotState
from robot_rl.geometry import Pose

AXES = "xyz"
DISTANCE = 0.01
"""[m]."""
REST = 1.0
"""Time at the far end, and after the way back [s]."""
GIVE_UP = 0.03
"""A distance from the start at which the arm is stopped [m]."""
LAG_NOTE, LAG_FAULT = 0.25, 0.6
"""[s]. Two periods of control; what a policy at 10 Hz cannot learn to control any more."""
ERROR_NOTE, ERROR_FAULT = 2e-3, 5e-3
"""[m]."""


def axes(arm: ArmUnderTrial) -> TrialOutcome:
    """Move it; each axis begins where the arm stands then."""
    results: list[CheckResult] = []
    traces: dict[str, Trace] = {}
    for number, name in enumerate(AXES):
        traces[f"axis {name}"], found = _axis(arm, name, np.eye(3)[number])
        results += found
    return TrialOutcome(results, traces)


def _axis(arm: ArmUnderTrial, name: str, direction: np.ndarray) -> tuple[Trace, list[CheckResult]]:
    start, sign = arm.io.read().T_base_tcp, _sign(arm, direction)
    direction = sign * direction
    way = DISTANCE / arm.speed
    out = along_line(start, DISTANCE * direction, arm.speed)
    back = along_line(Pose(start.position + DISTANCE * direction, start.quaternion), -DISTANCE * direction, arm.speed)
    turn = way + REST

    def set_point(state: RobotState, at: float) -> Pose:
        return out(state, at) if at < turn else back(state, at - turn)

    trace = arm.play(
        set_point,
        2 * turn,
        stop_when=lambda state: bool(np.linalg.norm(state.T_base_tcp.position - start.position) > GIVE_UP),
    )
    moved = trace.mean_position(turn - SETTLED, turn) - start.position
    shown = f"{'+' if sign > 0 else '-'}{name}"
    mapping = _mapping(name, shown, direction, moved)
    if mapping.severity == "fault":
        return trace, [mapping]
    return trace, [mapping, *_quality(name, response(trace, direction, turn))]


def _sign(arm: ArmUnderTrial, direction: np.ndarray) -> float:
    """Return the direction in which there is more room in the box."""
    at = float(arm.io.read().T_base_tcp.position @ direction)
    low, high = (float(np.array(edge) @ direction) for edge in (arm.limits.box_low, arm.limits.box_high))
    return 1.0 if high - at >= at - low else -1.0


def _mapping(axis: str, name: str, direction: np.ndarray, moved: np.ndarray) -> CheckResult:
    along = float(moved @ direction)
    main = int(np.abs(moved).argmax())
    text = f"sent {1e3 * DISTANCE:g} mm along {name}, the tcp goes {1e3 * along:.1f} mm that way"
    cure = ""
    if along < -0.2 * DISTANCE:
        text = f"sent {1e3 * DISTANCE:g} mm along {name}, the tcp goes {-1e3 * along:.1f} mm the opposite way"
        cure = f"axis {axis} is inverted: check the base frame and the mounting of the arm in its driver"
    elif abs(moved[main]) > abs(along) + 0.2 * DISTANCE:
        text = f"sent {1e3 * DISTANCE:g} mm along {name}, the tcp goes {1e3 * moved[main]:.1f} mm along {AXES[main]}"
        cure = "the axes are exchanged: check in which frame the driver takes set-points (the base frame is right)"
    elif along < DISTANCE - ERROR_FAULT:
        cure = "raise the stiffness of the controller, or find what holds the arm"
    return CheckResult(
        f"direction {axis}",
        "fault" if cure else "ok",
        text,
        round(1e3 * along, 3),
        "mm",
        f"{1e3 * DISTANCE:g} mm",
        cure,
    )


def _quality(name: str, found: Response) -> list[CheckResult]:
    late = judged(found.lag, LAG_NOTE, LAG_FAULT)
    off = judged(found.steady_error, ERROR_NOTE, ERROR_FAULT)
    return [
        CheckResult(
            f"lag {name}",
            late,
            f"the tcp follows its set-point along {name} {1e3 * found.lag:.0f} ms late"
            + ("" if late == "ok" else ": a policy has to foresee that long"),
            round(1e3 * found.lag, 1),
            "ms",
            f"at most {1e3 * LAG_NOTE:g} ms",
            ""
            if late == "ok"
            else "raise the stiffness or the gains of the controller; look at the network's round trip",
        ),
        CheckResult(
            f"steady error {name}",
            off,
            f"after the motion along {name} the tcp stands {1e3 * found.steady_error:.1f} mm from its set-point; "
            f"on the way it went {1e3 * found.overshoot:.1f} mm too far",
            round(1e3 * found.steady_error, 3),
            "mm",
            f"at most {1e3 * ERROR_NOTE:g} mm",
            "" if off == "ok" else "raise the stiffness of the controller; enter the payload of the tool",
        ),
    ]
