"""Does the arm stay where it is under zero actions? One that sinks believes in another payload than it carries."""

from __future__ import annotations

import numpy as np

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.contract.result import CheckResult

SECONDS = 5.0
LARGEST_DRIFT, LARGEST_TURN = 1e-3, 0.01
"""[m], [rad]."""
SETTLED, SETTLING = 3e-4, 2.0
"""The drift counts from where the arm moves by less [m] in a time [s]: once its motors have come on, an arm of servos
may sag for seconds, by a step of its encoders now and then."""
GIVE_UP = 0.03
"""A drift at which the arm is stopped [m]."""


def hold(arm: ArmUnderTrial) -> TrialOutcome:
    """Command the measured pose for 5 s, as an action of zero does."""
    arm.come_to_rest(SETTLED, SETTLING)
    start = arm.io.read().T_base_tcp.position
    trace = arm.play(
        lambda state, at: state.T_base_tcp,
        SECONDS,
        stop_when=lambda state: bool(np.linalg.norm(state.T_base_tcp.position - start) > GIVE_UP),
    )
    way = trace.mean_position(trace.seconds[-1] - 0.1) - start
    drift, turn = float(np.linalg.norm(way)), float(np.linalg.norm(trace.turn[-1]))
    bad = drift > LARGEST_DRIFT or turn > LARGEST_TURN
    text = f"under zero actions the tcp moves {1e3 * drift:.1f} mm and {np.degrees(turn):.1f} deg in {SECONDS:g} s"
    if bad and way[2] < -0.7 * drift:
        text += ": it sinks, as the tool weighs more than the controller believes"
        cure = "enter mass and centre of the tool as payload in the robot's own settings, then commission again"
    elif bad and way[2] > 0.7 * drift:
        text += ": it rises, as the tool weighs less than the controller believes"
        cure = "enter mass and centre of the tool as payload in the robot's own settings, then commission again"
    elif bad:
        text += ": it drifts sideways"
        cure = "check payload and mounting direction in the robot's own settings, and that no cable pulls at the tool"
    else:
        cure = ""
    result = CheckResult(
        "hold", "fault" if bad else "ok", text, round(1e3 * drift, 3), "mm", f"at most {1e3 * LARGEST_DRIFT:g} mm", cure
    )
    return TrialOutcome([result], {"hold": trace})
