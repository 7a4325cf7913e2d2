"""A person beside a training: takes over from the policy, judges, holds; the scripted operator still demonstrates."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robot_rl.config.components import TrainConfig
from robot_rl.console.buttons import read_log
from robot_rl.console.job_state import JobState
from robot_rl.console.recorded_episodes import recorded_rows
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import InterruptedRunError
from robot_rl.hil.operator_setup import Operation, OperatorOptions, operated, viewed_workcell
from robot_rl.learn.actor import Observer
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.run.directory.metrics import MetricsWriter, read_metrics
from robot_rl.run.human_labels import Hindsight
from robot_rl.run.make_reward import rewarded


@dataclass(frozen=True)
class Assisted:
    """What a training gets with a person beside it.

    Attributes:
        env: Where the policy acts and the person intervenes.
        demonstrator: Where the task's own operator demonstrates.
        watch: Who is told of every step.
        operation: Devices, supervision and console.
        run: The run directory.
        hindsight: What the person says of recorded episodes.
    """

    env: RobotEnv
    demonstrator: RobotEnv
    watch: Sequence[Observer]
    operation: Operation
    run: Path
    hindsight: Hindsight

    def take(self, learner: LearnerPort) -> None:
        """Tells the learner what the person said of episodes in hindsight."""
        self.hindsight.take(learner)

    def wait(self) -> bool:
        """Waits a moment while somebody holds the arm; whether the next episode may begin."""
        self.operation.person.watch()
        return self.operation.supervision.wait()

    @contextlib.contextmanager
    def begin(self, metrics: MetricsWriter) -> Iterator[None]:
        """Opens the console, with what the metrics tell, of the earlier parts of a resumed run too."""
        for record in read_metrics(metrics.path):
            self.operation.board.metric(record["kind"], record["env_step"], record)
        for row in recorded_rows(self.run / "episodes", self.env.spec_task.control_period):
            self.operation.board.ended(row)
        metrics.listeners.append(self.operation.board.metric)
        self.phase("training", "The policy acts and learns. Move to take over; let go to hand back.")
        try:
            with interventions_drawn(self.run), self.operation.serve():
                yield
        finally:
            metrics.listeners.remove(self.operation.board.metric)

    def phase(self, name: str, text: str) -> None:
        """Says what is done now."""
        self.operation.board.phase(name, text, ())


@contextlib.contextmanager
def interventions_drawn(run: Path) -> Iterator[None]:
    """Draws, when a training ends or is stopped, when people took over, for how long, and why."""

    def draw() -> None:
        from robot_rl.viz.interventions import intervention_plot  # here, as matplotlib takes half a second to import

        with EpisodeStore.open(run / "episodes") as store:
            log = run / "operator.jsonl"
            intervention_plot(store, read_log(log) if log.exists() else [], run / "interventions.png")

    try:
        yield
    except InterruptedRunError:
        draw()
        raise
    else:
        draw()


@contextlib.contextmanager
def assisted(
    config: TrainConfig,
    observed: WorkcellOptions,
    classifier: ClassifierFile | None,
    options: OperatorOptions,
    run: Path,
) -> Iterator[Assisted]:
    """The workcell with a person beside it. The console opens with `operation.serve`, once the run has its directory.

    Args:
        config: Of the training.
        observed: What the policy observes.
        classifier: That judges, where one does.
        options: How the person takes part.
        run: The run directory.
    """
    cell = rewarded(lambda: viewed_workcell(config.task, observed), config.reward, classifier)
    with contextlib.ExitStack() as stack:
        stack.callback(cell.close)
        stack.callback(cell.io.stop)
        board = JobState("training", cell.task.spec, config.env_steps)
        shown, log = run / "episodes", run / "operator.jsonl"
        operation = stack.enter_context(operated(cell, options, board, store=shown, log=log))
        supervision, handover = operation.supervision, HandoverLimits()
        supervision.time_to_overrule = config.reward.overrule_s
        hindsight = Hindsight()
        operation.judged = hindsight.say
        env = RobotEnv(supervision.workcell(operation.person), interventions=True, options=observed, handover=handover)
        demonstrator = RobotEnv(supervision.workcell(cell.operator, cell.operator_source), options=observed)
        yield Assisted(env, demonstrator, [board], operation, run, hindsight)
