"""How fast does the arm stand when nobody commands it any more, and when it is stopped?"""

from __future__ import annotations

import math

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.commission.motion.arm_under_trial import PERIOD, TTL, ArmUnderTrial, along_line
from robot_rl.commission.motion.response import stands_after
from robot_rl.commission.motion.trace import Trace, TraceRecorder
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.contract.result import CheckResult

MOVING = 1.0
"""How long the arm moves before [s]."""
WATCHED = 2.0
"""How long it is watched after [s]."""
REACTION = 0.3
"""Time in which an arm has to stand, counted from the end of the last command or from the stop [s]."""
WAY = 0.02
"""Longest way meanwhile [m]."""


def expiry(arm: ArmUnderTrial) -> TrialOutcome:
    """Stop to command in the middle of a motion."""
    trace, begin = _interrupted(arm, stop=False)
    return TrialOutcome([_judged("expiry", "the commands end", trace, begin, TTL + REACTION)], {"expiry": trace})


def stop(arm: ArmUnderTrial) -> TrialOutcome:
    """Stop the arm in the middle of a motion."""
    trace, begin = _interrupted(arm, stop=True)
    return TrialOutcome([_judged("stop", "the stop", trace, begin, REACTION)], {"stop": trace})


def _interrupted(arm: ArmUnderTrial, *, stop: bool) -> tuple[Trace, float]:
    """Return the trace, and when the commands ended [s]. Upwards, or down where there is more room."""
    start = arm.io.read().T_base_tcp
    at, low, high = start.position[2], arm.limits.box_low[2], arm.limits.box_high[2]
    offset = np.array([0.0, 0.0, 1.0 if high - at >= at - low else -1.0]) * arm.speed * 2 * MOVING
    recorder = TraceRecorder(arm.clock.now())
    arm.play(along_line(start, offset, arm.speed), MOVING, record=recorder)
    begin = MOVING - PERIOD  # of the last command
    if stop:
        begin = (arm.clock.now() - recorder.begin) / NS_PER_S
        arm.io.stop()
    trace = arm.watch(recorder, WATCHED)
    arm.io.stop()  # whatever it still does
    return trace, begin


def _judged(name: str, cause: str, trace: Trace, begin: float, longest: float) -> CheckResult:
    after, way = stands_after(trace, begin)
    limit = f"at most {longest:.2f} s and {1e3 * WAY:g} mm"
    if math.isinf(after):
        text = f"{WATCHED:g} s after {cause} the arm still moves; it went {1e3 * way:.0f} mm"
        cure = "do not train: the driver keeps its last command for ever; it has to hold when commands expire"
        return CheckResult(name, "fault", text, round(1e3 * way, 2), "mm", limit, cure)
    bad = after > longest or way > WAY
    return CheckResult(
        name,
        "fault" if bad else "ok",
        f"the arm stands {after:.2f} s after {cause}, {1e3 * way:.1f} mm further on",
        round(after, 3),
        "s",
        limit,
        "lower max_speed, or make the controller stiffer, until the way is short enough" if bad else "",
    )
