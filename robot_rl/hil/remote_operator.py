"""A person beside a job whose console and devices are in another process: what reaches the control loop of their word.

It stands where `person_training.py` stands for a person at this process; the rules are those of `Supervision` alike. It
does not know how the word travels.
"""

from __future__ import annotations

from collections.abc import Sequence

from robot_rl.data.schema import Source
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import StepOrderError
from robot_rl.learn.actor import Observer
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.run.human_labels import Hindsight

STOPPED = "stopped"
"""Name of the hold while whoever lets commands through has latched a stop."""


class PersonElsewhere:
    """What people say may come from any thread; before there is a workcell, only stops are remembered."""

    watch: Sequence[Observer] = ()  # whoever shows the episodes sees them by itself

    def __init__(self) -> None:
        self.hindsight = Hindsight()
        self.leads = False
        """Whether it is a person who takes over and demonstrates, not a script."""
        self._env: RobotEnv | None = None
        self._supervision: Supervision | None = None
        self._stopped, self._heard, self._time_to_overrule = "", False, 0.0

    def environment(
        self, cell: Workcell, options: WorkcellOptions, *, interventions: bool, time_to_overrule: float
    ) -> RobotEnv:
        """The environment that the person supervises.

        Args:
            cell: The robot, with everybody else who judges.
            options: What is observed.
            interventions: Whether the operator may take over.
            time_to_overrule: How long a classifier's success waits for the word of a person who is there [s].
        """
        self._supervision, self._time_to_overrule = Supervision(cell), time_to_overrule
        self.stopped(self._stopped)
        self.heard(self._heard)
        self.leads = cell.operator is not None and cell.operator_source == Source.HUMAN
        self._env = RobotEnv(
            self._supervision.workcell(cell.operator, cell.operator_source),
            interventions=interventions,
            options=options,
            handover=HandoverLimits() if self.leads else None,
        )
        return self._env

    # ------------------------------------------------------------- for people

    @property
    def question(self) -> str:
        """What the control loop waits for; empty if for nothing."""
        return self._supervision.question if self._supervision is not None else ""

    def heard(self, heard: bool) -> None:
        """Whether anybody is told the questions; otherwise none is asked."""
        self._heard = heard
        if self._supervision is not None:
            self._supervision.time_to_overrule = self._time_to_overrule if heard else 0.0

    def stopped(self, reason: str) -> None:
        """Somebody has latched a stop for this reason, or, with none, let go of it."""
        self._stopped = reason
        if self._supervision is None:
            return
        if reason:
            self._supervision.hold(STOPPED, reason)
        else:
            self._supervision.release(STOPPED)

    def say(self, success: bool | None, reason: str = "") -> None:
        """Ends the running episode as a success or a failure, or, with neither, cuts it for this reason."""
        if self._supervision is None:
            return  # no episode is running
        if success is None:
            self._supervision.cut(reason)
        else:
            self._supervision.mark(success)

    # ------------------------------------------------------------ for the job

    @property
    def demonstrator(self) -> RobotEnv:
        """The same environment: whoever has the device leads there, too.

        Raises:
            StepOrderError: if it has not been made.
        """
        if self._env is None:
            raise StepOrderError("there is no environment yet")
        return self._env

    def wait(self) -> bool:
        """Waits a moment while a stop is latched; whether the next episode may begin."""
        return self._supervision is None or self._supervision.may_go_on()

    def take(self, learner: LearnerPort) -> None:
        """Tells the learner what was said of episodes in hindsight."""
        self.hindsight.take(learner)
