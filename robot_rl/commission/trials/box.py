"""Each limit of the box, slowly: does the arm come there, and does the limit hold it back?"""

from __future__ import annotations

from functools import partial

import numpy as np

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial, along_line
from robot_rl.commission.motion.trace import Trace
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.env.robot_io import RobotState

BEYOND = 0.01
"""How far beyond the limit the arm is sent [m]."""
REST = 0.5
"""At the limit [s]."""
SHORT = 0.01
"""How far from the limit the arm may end [m]."""


def box(arm: ArmUnderTrial) -> TrialOutcome:
    """Send it to the six limits, each 1 cm beyond, and back to the start each time."""
    results, traces = [], {}
    start = arm.io.read().T_base_tcp
    low, high = np.array(arm.limits.box_low), np.array(arm.limits.box_high)
    if (outside := np.abs(start.position - np.clip(start.position, low, high)).max()) > 0.0:
        text = f"the tcp is {1e3 * outside:.0f} mm outside the box at the start"
        cure = "move the arm into the box by hand, or correct box_low and box_high"
        return TrialOutcome([CheckResult("box", "fault", text, cure=cure)])
    for number, axis in enumerate("xyz"):
        for sign, edge in ((-1.0, low), (1.0, high)):
            direction = sign * np.eye(3)[number]
            distance = float((edge - start.position) @ direction)
            name = f"limit {'-' if sign < 0 else '+'}{axis}"
            trace = _there_and_back(arm, direction, distance)
            traces[name] = trace
            results.append(_judged(arm, name, distance, (trace.position - start.position) @ direction))
            if results[-1].severity == "fault":
                return TrialOutcome(results, traces)  # the other limits would not hold either
    return TrialOutcome(results, traces)


def _there_and_back(arm: ArmUnderTrial, direction: np.ndarray, distance: float) -> Trace:
    start = arm.io.read().T_base_tcp
    stop_at = distance + 2 * arm.limits.box_tolerance

    def way(state: RobotState) -> float:
        return float((state.T_base_tcp.position - start.position) @ direction)

    out = along_line(start, (distance + BEYOND) * direction, arm.speed)
    trace = arm.play(out, (distance + BEYOND) / arm.speed + REST, stop_when=lambda state: way(state) > stop_at)
    here = arm.io.read().T_base_tcp
    to_start = start.position - here.position
    arm.play(along_line(here, to_start, arm.speed), float(np.linalg.norm(to_start)) / arm.speed + REST)
    return trace


def _judged(arm: ArmUnderTrial, name: str, distance: float, ways: np.ndarray) -> CheckResult:
    over, short = float(ways.max()) - distance, distance - float(ways[-1])
    found = partial(
        CheckResult, name, value=round(1e3 * over, 3), unit="mm", limit=f"at most {1e3 * arm.limits.box_tolerance:g} mm"
    )
    if over > arm.limits.box_tolerance:
        text = f"sent {1e3 * BEYOND:g} mm beyond the limit, the tcp goes {1e3 * over:.1f} mm: the limit does not hold"
        return found("fault", text, cure="do not train; check that commands pass the limits (box_low, box_high)")
    if short > SHORT:
        text = f"the tcp comes only to {1e3 * short:.0f} mm before the limit: out of its reach, or something in the way"
        return found("note", text, cure="make the box smaller, or change the start pose")
    return found("ok", f"the tcp comes to the limit and stays within {1e3 * max(over, 0.0):.1f} mm of it")
