"""A person presses the tool down: does the wrench have the right sign, and the right axes?"""

from __future__ import annotations

import numpy as np

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.motion.trace import force_in_base
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.env.robot_io import RobotState

QUIET, PATIENCE = 1.0, 20.0
"""Time in which nobody presses yet, and longest wait for the press [s]."""
PRESSED = 5.0
"""Force that counts as a press [N]."""
ENOUGH = 10
"""Samples of it."""


def press(arm: ArmUnderTrial) -> TrialOutcome:
    """Hold the arm, and wait until somebody presses."""
    if not arm.measures_wrench:
        text = "this arm measures no force: no limit on forces is in effect, and a task must not need one"
        return TrialOutcome([CheckResult("wrench", "note", text, cure="add a force sensor, or keep the stiffness low")])
    start = arm.io.read().T_base_tcp
    quiet = arm.play(lambda state, at: start, QUIET)
    bias, noise = quiet.force.mean(axis=0), float(np.sqrt(quiet.force.var(axis=0).sum()))
    seen: list[np.ndarray] = []

    def pressed(state: RobotState) -> bool:
        force = force_in_base(state) - bias
        if np.linalg.norm(force) > max(PRESSED, 5 * noise):
            seen.append(force)
        return len(seen) >= ENOUGH

    trace = arm.play(lambda state, at: start, PATIENCE, stop_when=pressed)
    return TrialOutcome([_judged(seen)], {"press": trace})


def _judged(seen: list[np.ndarray]) -> CheckResult:
    if len(seen) < ENOUGH:
        text = f"nobody pressed with more than {PRESSED:g} N within {PATIENCE:g} s, or the sensor does not see it"
        return CheckResult("wrench sign", "note", text, cure="commission again, and press the tool down with a hand")
    force = np.mean(seen, axis=0)
    main = int(np.abs(force).argmax())
    value, shown = (
        round(float(force[2]), 2),
        ", ".join(f"{axis} {part:.1f}" for axis, part in zip("xyz", force, strict=True)),
    )
    text = f"pressed down, the tool feels {shown} N in the axes of the base"
    limit = "z below 0, and larger than x and y"
    if main != 2:
        cure = "its axes are exchanged: check wrench_frame, and that the base's z points up"
        return CheckResult("wrench sign", "fault", text, value, "N", limit, cure)
    if force[2] > 0:
        cure = "its sign is wrong: it has to be what the environment exerts on the tool; invert it in the driver"
        return CheckResult("wrench sign", "fault", text, value, "N", limit, cure)
    return CheckResult("wrench sign", "ok", text, value, "N", limit)
