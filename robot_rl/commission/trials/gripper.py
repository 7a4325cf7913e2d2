"""How long does the gripper take to close and to open?"""

from __future__ import annotations

import numpy as np

from robot_rl.commission.motion.arm_under_trial import PERIOD, ArmUnderTrial
from robot_rl.commission.motion.trace import Trace
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.contract.result import CheckResult

PATIENCE = 4.0
"""For one way [s]."""
SLOW = 1.5
"""[s]. An action that lasts longer spans many steps of a policy at 10 Hz."""
WANTED = 0.5
"""Least share of the opening that it has to move."""
NEAR = 0.05
"""Share of the opening within which it counts as there."""
LEAST = 0.005
"""An opening below this is none [m]."""
WIDE = 0.2
"""Wider than any gripper of an arm opens [m]: drivers clamp it to theirs."""


def gripper(arm: ArmUnderTrial) -> TrialOutcome:
    """Open it, then measure closing and opening."""
    if not arm.has_gripper:
        return TrialOutcome([CheckResult("gripper", "ok", "this arm has no gripper")])
    start = arm.io.read().T_base_tcp
    opened = arm.play(lambda state, at: start, PATIENCE, width=WIDE)
    opening = float(opened.width[-1])
    results, traces = [], {}
    for name, width in (("closing", 0.0), ("opening", WIDE)):
        before = arm.io.read().gripper_width
        trace = arm.play(lambda state, at: start, PATIENCE, width=width)
        traces[f"gripper {name}"] = trace
        results.append(_judged(name, trace, before, opening))
    return TrialOutcome(results, traces)


def _judged(name: str, trace: Trace, before: float, opening: float) -> CheckResult:
    if opening < LEAST:
        text = f"sent to open, the gripper reports a width of {1e3 * opening:.1f} mm"
        cure = "is it activated, and referenced (homed)? check gripper_width, gripper_closed and gripper_opened"
        return CheckResult(f"gripper {name}", "fault", text, round(1e3 * opening, 2), "mm", f"{1e3 * LEAST:g} mm", cure)
    moved = abs(float(trace.width[-1]) - before)
    if moved < WANTED * opening:
        text = f"{name} the gripper moves it {1e3 * moved:.0f} mm of {1e3 * opening:.0f} mm"
        cure = "is it activated, and referenced (homed)? check gripper_width, gripper_closed and gripper_opened"
        return CheckResult(f"gripper {name}", "fault", text, round(1e3 * moved, 2), "mm", f"{1e3 * opening:g} mm", cure)
    away = np.flatnonzero(np.abs(trace.width - trace.width[-1]) > NEAR * opening)
    seconds = float(trace.seconds[away[-1]]) + PERIOD if len(away) else 0.0
    slow = seconds > SLOW
    return CheckResult(
        f"gripper {name}",
        "note" if slow else "ok",
        f"{name} the gripper takes {seconds:.1f} s" + (": many steps of a policy" if slow else ""),
        round(seconds, 2),
        "s",
        f"at most {SLOW:g} s",
        "raise its speed in the driver's settings" if slow else "",
    )
