"""All trials in order, each after a person's consent; a fault of a needed one ends the session."""

from __future__ import annotations

from collections.abc import Callable

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.motion.trial import Trial, TrialOutcome
from robot_rl.commission.trials.axes import axes
from robot_rl.commission.trials.box import box
from robot_rl.commission.trials.gripper import gripper
from robot_rl.commission.trials.hold import hold
from robot_rl.commission.trials.press import press
from robot_rl.commission.trials.standstill import expiry, stop
from robot_rl.doctor.contract.result import CheckResult, worst
from robot_rl.errors import RobotRLError

TRIALS = (
    Trial("hold", "the arm holds where it is for 5 s; keep a hand at the emergency stop", hold, needed=True),
    Trial("axes", "the tool moves 1 cm along each axis of the base and back, slowly", axes, needed=True),
    Trial("expiry", "the tool moves for 1 s, then commands end: it has to hold", expiry, needed=True),
    Trial("stop", "the tool moves for 1 s, then it is stopped", stop, needed=True),
    Trial("box", "the tool moves slowly to each limit of its box: all of the box has to be free", box),
    Trial("wrench", "the arm holds; after a second, press the tool down with a hand", press),
    Trial("gripper", "the gripper opens, closes and opens: nothing between its fingers", gripper),
)
"""In the order in which each may rely on those before it."""


class CommissioningSession:
    """Makes the trials.

    Args:
        arm: The arm.
        consent: Given the announcement of a trial; returns whether the person consents.
        trials: Which.
    """

    def __init__(self, arm: ArmUnderTrial, consent: Callable[[str], bool], trials: tuple[Trial, ...] = TRIALS) -> None:
        self._arm, self._consent, self._trials = arm, consent, trials

    def run(self, report: Callable[[CheckResult], None] = lambda result: None) -> TrialOutcome:
        """Make all trials, and return what they found together. In the end the arm holds.

        Args:
            report: Given each result at once.
        """
        whole = TrialOutcome([])
        ended_by = ""
        for trial in self._trials:
            found = TrialOutcome([self._left_out(trial, ended_by)]) if ended_by else self._made(trial)
            for result in found.results:
                report(result)
            whole.results.extend(found.results)
            whole.traces.update(found.traces)
            if trial.needed and not ended_by and worst(found.results) == "fault":
                ended_by = trial.name
        self._arm.io.stop()
        return whole

    def _made(self, trial: Trial) -> TrialOutcome:
        if not self._consent(trial.announcement):
            text = "left out: nobody consented"
            return TrialOutcome([CheckResult(trial.name, "note", text, cure="commission again")])
        try:
            return trial.run(self._arm)
        except RobotRLError as error:
            self._arm.io.stop()
            text = f"the trial ended early: {error}"
            return TrialOutcome([CheckResult(trial.name, "fault", text, cure="cure that, and commission again")])

    @staticmethod
    def _left_out(trial: Trial, because: str) -> CheckResult:
        text = f"left out: the fault of {because!r} has to be cured before"
        return CheckResult(trial.name, "note", text, cure="cure it, and commission again")
