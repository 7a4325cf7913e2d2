"""A human operator whose console and devices are in another process: stops, labels and outcomes arrive as calls.

`local_operator.py` is the same for an operator at this process; both follow the rules of `Supervision`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from robot_rl.data.schema import Source
from robot_rl.env.episode_observer import Observer
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import LISTEN, Supervision
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import ConfigError, StepOrderError
from robot_rl.hil.interventions import draw_interventions
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.run.human_labels import HumanLabels

STOPPED = "stopped"
"""Name of the hold while the supervisor of the robot has latched a stop."""


class RemoteOperator:
    """An operator in another process; an `Assistance`.

    Calls may come from any thread. Before there is an environment, only stops are remembered.

    Attributes:
        labels: Labels of recorded episodes that the learner does not have yet.
        is_human: A human, not a script, takes over and demonstrates; known from `environment` on.
        observers: None: the console observes the episodes by itself.
    """

    observers: Sequence[Observer] = ()

    def __init__(self) -> None:
        self.labels = HumanLabels()
        self.is_human = False
        self.called = ""
        """Why the policy needs help; empty: it does not."""
        self._env: RobotEnv | None = None
        self._supervision: Supervision | None = None
        self._stop_reason, self._listening, self._overrule_s = "", False, 0.0

    @contextlib.contextmanager
    def environment(
        self, cell: Workcell, options: WorkcellOptions, *, interventions: bool, overrule_s: float
    ) -> Iterator[RobotEnv]:
        """Open the environment that the operator supervises; see `Assistance.environment`.

        Raises:
            ConfigError: if a person is to judge a stage: what they press comes as the success of the whole.
        """
        if theirs := cell.person_stages:
            raise ConfigError(
                f"a person judges the stage {', '.join(theirs)}, and over topics that is not connected; give it "
                "another judge (reward.stages.order)"
            )
        self._supervision, self._overrule_s = Supervision(cell), overrule_s
        self.set_stop(self._stop_reason)
        self.set_listening(self._listening)
        self.is_human = cell.operator is not None and cell.operator_source == Source.HUMAN
        self._env = RobotEnv(
            self._supervision.workcell(cell.operator, cell.operator_source),
            interventions=interventions,
            options=options,
            handover=HandoverLimits() if self.is_human else None,
        )
        with contextlib.closing(self._env):
            yield self._env

    # ------------------------------------------------- for the other process

    @property
    def question(self) -> str:
        """The question that the control loop waits for an answer to; empty if there is none."""
        return self._supervision.question if self._supervision is not None else ""

    def set_listening(self, listening: bool) -> None:
        """Set whether anybody receives the questions; otherwise the control loop has none."""
        self._listening = listening
        if self._supervision is not None:
            self._supervision.time_to_overrule = self._overrule_s if listening else 0.0

    def set_stop(self, reason: str) -> None:
        """Hold the arm because a stop was latched for this reason, or, with an empty one, release it."""
        self._stop_reason = reason
        if self._supervision is None:
            return
        if reason:
            self._supervision.hold(STOPPED, reason)
        else:
            self._supervision.release(STOPPED)

    def end_episode(self, success: bool | None, reason: str = "") -> None:
        """End the running episode as a success or a failure, or, with None, cut it for this reason."""
        if self._supervision is None:
            return  # no episode is running
        if success is None:
            self._supervision.cut(reason)
        else:
            self._supervision.mark(success)

    # ------------------------------------------------------- for the training

    @property
    def demonstrator(self) -> RobotEnv:
        """The same environment: the operator's device demonstrates there too.

        Raises:
            StepOrderError: before `environment`.
        """
        if self._env is None:
            raise StepOrderError("there is no environment yet")
        return self._env

    def may_start(self) -> bool:
        """Return whether the next episode may start; wait a moment while a stop is latched."""
        if self._supervision is not None:
            return self._supervision.may_go_on()
        if self._stop_reason:
            time.sleep(LISTEN)
        return not self._stop_reason

    def exchange(self, learner: LearnerPort) -> None:
        """Send the operator's new labels of recorded episodes to the learner; never wait."""
        self.labels.deliver(learner)

    @contextlib.contextmanager
    def session(self, run: Path, metrics: MetricsWriter) -> Iterator[None]:
        """Draw the interventions of a human when the training ends; the console runs by itself."""
        del metrics
        if not self.is_human:
            yield
            return
        with draw_interventions(run):
            yield

    def evaluation(self) -> contextlib.nullcontext[None]:
        """Do nothing: the console runs by itself."""
        return contextlib.nullcontext()

    def call(self, text: str) -> None:
        """Keep the call, for whoever shows it; an empty text: no more."""
        self.called = text

    def phase(self, name: str, text: str) -> None:
        """Do nothing: the console does not show phases of a training elsewhere."""
