"""The run of a fleet's learner: its directory, its loop and its checkpoints, from the first robot to the summary."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robot_rl.base_policy.base_file import facts_of_base, keep_base
from robot_rl.config.load import config_from_dict, config_to_dict
from robot_rl.errors import InterruptedRunError, LinkError, RobotRLError
from robot_rl.fleet.agreement import Seen, check_base_alike, check_version
from robot_rl.fleet.fleet_learner import FleetLearner, facts_of
from robot_rl.fleet.intake import PARAMETERS_EVERY, Intake, Received, ReceivedEpisode
from robot_rl.fleet.plan import FleetPlan, differences
from robot_rl.fleet.standing import FleetStanding
from robot_rl.learn.networks.networks import policy_digest
from robot_rl.link.messages import Parameters, RobotFinished, RobotHello, UpdateProgress
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.resume import keep_checkpoint, read_training, save_training
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Progress

PUBLISH_INTERVAL = 5
"""Env steps between two sets of parameters, as between an actor and a learner of its own."""
PRETRAIN_CALL = 200
"""Updates on the demonstrations between two looks at a stop request."""


class FleetServer:
    """Serves a fleet until all robots have finished.

    Args:
        plan: The fleet.
        run: The learner's run directory.
        metrics: Writes its metrics.
        progress: Shows how many steps of all robots were learned from.
        state: Its newest checkpoint; None if there is none.

    Attributes:
        stop_requested: Set by a signal handler; it then saves and ends.
    """

    def __init__(
        self,
        plan: FleetPlan,
        run: RunDirectory,
        metrics: MetricsWriter,
        progress: Progress,
        state: Mapping[str, Any] | None,
    ) -> None:
        self._plan, self._run, self._metrics, self._progress = plan, run, metrics, progress
        self._config = plan.whole()
        self._base = facts_of_base(self._config.base, run.path)
        self.stop_requested = False
        self.learner: FleetLearner | None = None
        """Made with the first robot, of whose environment it learns."""
        self._seen: Seen | None = None
        self._state = state
        self._started, self._earlier = time.monotonic(), float(state["wall_time"]) if state else 0.0
        self._saved = self._published = -1
        self._published_at = float("-inf")
        self._marks = (self._started, 0, 0)
        if state:
            facts = RunDirectory.read_facts(run.path)["agreement"]
            self._make(Seen.of(facts["task"], facts["percepts"], str(run.path)))

    @property
    def wall_time(self) -> float:
        """Time spent, earlier parts of a resumed run included [s]."""
        return self._earlier + time.monotonic() - self._started

    def serve(self, listener: socket.socket, token: str) -> None:
        """Learn until all robots have finished, or a stop is requested.

        Raises:
            RobotRLError: that ended the learning; the robots receive it too.
        """
        cursors = {} if self.learner is None else self.learner.cursors
        intake = Intake(
            listener, token, self._plan.shares, cursors, self.check, self._check_episode, self._progress.log
        )
        standing = FleetStanding(self._run.path, self._plan)
        intake.start()
        try:
            while not self.stop_requested:
                received = intake.next(timeout=0.2)
                learner = self.learner
                if learner is not None and self._published < 0:
                    self._publish(intake, learner)
                if received is not None and learner is not None:
                    self._handle(intake, learner, *received)
                if learner is not None and self._pretrain_some(learner):
                    self._publish(intake, learner)
                if learner is not None:
                    self._publish_if_due(intake, learner)
                standing.write(learner, intake.connected, self.wall_time)
                if learner is not None and learner.finished == set(self._plan.robots):
                    break
            self.save(intake)
        except RobotRLError as error:
            intake.close(error)
            raise
        finally:
            intake.close()
            if self.learner is not None:
                self.learner.learner.close()
            standing.write(self.learner, [], self.wall_time, now=True)

    # Who may join.

    def check(self, hello: RobotHello) -> None:
        """Refuse a robot that does not go with the fleet; the first one decides what the learner is made for.

        Raises:
            LinkError: naming what differs.
        """
        check_version(hello)
        seen = Seen.of(hello.task, hello.percepts, hello.robot)
        if changed := differences(self._config, config_from_dict(hello.config)):
            raise LinkError(
                f"{hello.robot} has other settings of {', '.join(changed)} than the fleet; start it with the "
                "fleet's plan"
            )
        check_base_alike(hello, self._base)
        if self._seen is None:
            # First the file: a checkpoint of a learner whose agreement is not on disk could not be resumed.
            self._run.record("agreement", {"task": hello.task, "percepts": hello.percepts, "robot": hello.robot})
            self._make(seen)
            return
        self._seen.check(hello.robot, seen)

    # Learning.

    def _handle(self, intake: Intake, learner: FleetLearner, name: str, received: Received) -> None:
        if isinstance(received, RobotFinished):
            try:
                learner.finish(name, received.episodes)
            except LinkError as error:
                intake.refuse(name, str(error))
                return
            self.save(intake)
        elif isinstance(received, ReceivedEpisode):
            learner.learn(name, received, lambda logs: self._on_step(intake, learner, logs))
            intake.learned(name)
            if learner.learner.env_steps - self._saved >= self._config.checkpoint_interval:
                self.save(intake)
        else:
            learner.note(name, received)

    def _on_step(self, intake: Intake, learner: FleetLearner, logs: Mapping[str, float] | None) -> None:
        inner = learner.learner
        self._publish_if_due(intake, learner, PUBLISH_INTERVAL)
        self._progress.update(inner.env_steps, robots=f"{len(intake.connected)} of {len(self._plan.robots)}")
        if logs is not None:
            self._record(learner, logs)

    def _record(self, learner: FleetLearner, logs: Mapping[str, float]) -> None:
        inner, now, (then, steps, updates) = learner.learner, time.monotonic(), self._marks
        self._marks = (now, inner.env_steps, inner.updates)
        rates = {
            "steps_per_s": (inner.env_steps - steps) / max(now - then, 1e-9),
            "updates_per_s": (inner.updates - updates) / max(now - then, 1e-9),
        }
        counts = {"updates": inner.updates, "utd": inner.update_to_data}
        remembered = {f"replay_{name}": float(count) for name, count in learner.steps_of.items()}
        self._metrics.write("update", inner.env_steps, {**counts, **rates, **logs, **remembered})
        self._progress.update(inner.env_steps, updates_per_s=rates["updates_per_s"], q_mean=logs.get("q_mean"))

    def _pretrain_some(self, learner: FleetLearner) -> bool:
        """Make some of the updates on the demonstrations alone, once all are there; return whether any were made."""
        inner, total = learner.learner, self._config.offline.steps
        if inner.offline_updates >= total or inner.env_steps or not learner.demonstrated:
            return False
        logs = learner.pretrain(min(PRETRAIN_CALL, total - inner.offline_updates))
        values = {"offline_updates": inner.offline_updates, **logs}
        self._metrics.write("offline", inner.offline_updates - total, values)
        return True

    def _publish_if_due(self, intake: Intake, learner: FleetLearner, steps: int = 1) -> None:
        """Publish what was learned from so many steps at least, but not more often than a robot would get it."""
        due = learner.learner.env_steps - self._published >= steps
        if due and time.monotonic() - self._published_at >= PARAMETERS_EVERY:
            self._publish(intake, learner)

    def _publish(self, intake: Intake, learner: FleetLearner) -> None:
        """Send the newest policy and the counters to all robots."""
        inner = learner.learner
        self._published, self._published_at = inner.env_steps, time.monotonic()
        arrays = {name: value.numpy().copy() for name, value in inner.policy.policy_state().items()}
        intake.publish(Parameters(updates=inner.updates, arrays=arrays))
        progress = UpdateProgress(
            env_steps=inner.env_steps,
            updates=inner.updates,
            update_to_data=inner.update_to_data,
            offline_updates=inner.offline_updates,
        )
        intake.publish(progress)

    # Files.

    def save(self, intake: Intake) -> None:
        """Write a checkpoint, and report to the robots what is in it."""
        learner = self.learner
        if learner is None:
            return
        inner, path = learner.learner, self._run.checkpoint_path
        state = {**learner.state_dict(), **facts_of(inner, self.wall_time, self._base)}
        save_training(path, state, {"task": self._config.task, "env_steps": inner.env_steps, "updates": inner.updates})
        self._saved = inner.env_steps
        keep_checkpoint(path, inner.env_steps, self._config.keep_checkpoints)
        self._run.begun = True
        intake.saved(learner.cursors, learner.finished)

    def _make(self, seen: Seen) -> None:
        learner = FleetLearner(self._plan, seen.task, seen.percepts)
        if self._state is not None:
            learner.load_state_dict(self._state)
            self._saved = learner.learner.env_steps
        self._marks = (time.monotonic(), learner.learner.env_steps, learner.learner.updates)
        self._seen, self.learner = seen, learner

    def _check_episode(self, name: str, episode: ReceivedEpisode) -> None:
        if self.learner is not None:
            self.learner.check_episode(name, episode)


def serve_fleet(
    plan: FleetPlan, path: Path, listener: socket.socket, token: str, *, resume: bool, command: str
) -> dict[str, Any]:
    """Run the learner of a fleet; return its summary, which is also written to `summary.json`.

    Args:
        plan: The fleet.
        path: The learner's run directory.
        listener: A listening socket for the robots.
        token: That they must have.
        resume: Continue the run in that directory.
        command: That continues it, for messages.

    Raises:
        InterruptedRunError: after Ctrl-C; it can be resumed.
        RobotRLError: whatever else ended it.
    """
    config = plan.whole()
    with contextlib.ExitStack() as stack:
        run, state = stack.enter_context(_opened(plan, path, resume))
        kept = None if not resume else int(state["env_steps"]) if state else -1
        metrics = stack.enter_context(MetricsWriter(run.metrics_path, run.tensorboard_path, kept))
        start = int(state["env_steps"]) if state else 0
        progress = stack.enter_context(Progress(config.env_steps, f"fleet {config.task}", start=start))
        server = FleetServer(plan, run, metrics, progress, state)

        def stop() -> None:
            server.stop_requested = True
            progress.log("stopping: the learner saves; the robots keep what they play in their stores")

        with stop_on_signal(stop):
            server.serve(listener, token)
        learner = server.learner
        if server.stop_requested or learner is None:
            steps = 0 if learner is None else learner.learner.env_steps
            raise InterruptedRunError(
                f"stopped after {steps} of {config.env_steps} env steps, and saved; continue with: {command}"
            )
        summary = {
            "task": config.task,
            "seed": config.seed,
            "env_steps": learner.learner.env_steps,
            "offline_updates": learner.learner.offline_updates,
            "updates": learner.learner.updates,
            "utd": learner.learner.update_to_data,
            "policy": policy_digest(learner.deployed.state_dict()["policy"]),
            "robots": {
                name: {
                    "episodes": learner.cursors[name].episodes,
                    "demonstrations": learner.demonstrations[name],
                    "steps_remembered": learner.steps_of[name],
                    "share": plan.robots[name].share,
                }
                for name in plan.robots
            },
            "wall_s": server.wall_time,
            "device": config.device,
            "config": config_to_dict(config),
            "provenance": run.provenance,
        }
        run.write_json(run.summary_path, summary)
    return summary


@contextlib.contextmanager
def _opened(plan: FleetPlan, path: Path, resume: bool) -> Iterator[tuple[RunDirectory, dict[str, Any] | None]]:
    """Open the learner's run directory, and read its checkpoint if it has one."""
    config = plan.whole()
    if not resume:
        facts_of_base(config.base, path)  # raises where its file is not there, before anything is made
        with RunDirectory.create(path, config, facts={"fleet": sorted(plan.robots)}) as run:
            run.begun = True
            keep_base(config.base, run.path)
            yield run, None
        return
    with RunDirectory.resume(path, config.task) as run:
        if changed := differences(run.config, config):
            raise LinkError(
                f"{path} was made with other settings of {', '.join(changed)}; resume it without changing them"
            )
        keep_base(config.base, run.path)
        state = read_training(run.checkpoint_path) if run.checkpoint_path.exists() else None
        yield run, state
