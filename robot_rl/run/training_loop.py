"""The main job: demonstrations in, a policy out, with an operator able to intervene at every step.

`Training` takes turns between the robot side (`Rollout`) and the learner (`LearnerPort`), records every episode, keeps
the metrics, and writes checkpoints between episodes, from which `resume` continues to the same result.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.data.schema import Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import CheckpointError, RobotLostError
from robot_rl.learn.actor import EpisodeResult, Observer, Rollout, StoreRecorder
from robot_rl.learn.checkpoint import save_checkpoint
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.networks.policy_average import PolicyAverage
from robot_rl.run.control_timing import ControlTiming
from robot_rl.run.demonstrate import demonstration_facts, demonstration_id, record_demonstrations
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.run.episode_retry import Patience
from robot_rl.run.evaluation import evaluate, mean
from robot_rl.run.training_hooks import Assistance, Labels
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.system.model_files import TRAINING
from robot_rl.system.progress import Progress

ROLLING = 20
"""Episodes in the rolling figures of the progress display."""
OFFLINE_CALL = 200
"""Updates offline between two looks at whether to go on; a second or two."""


class Training:
    """One training run.

    Args:
        config: What to do.
        env: The robot, its task and its operator.
        checkpoint: Where checkpoints go.
        learner: Who learns.
        store: Where episodes are recorded.
        metrics: Where the record of the run goes.
        progress: Tells how it goes.
        assistance: A person beside the training, None without one.
        patience: What to do when the robot is lost; None raises the error.
        labels: What says later whether an online episode succeeded; None if it is known at its end.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        env: RobotEnv,
        checkpoint: Path,
        learner: LearnerPort,
        store: EpisodeStore,
        metrics: MetricsWriter,
        progress: Progress,
        assistance: Assistance | None = None,
        patience: Patience | None = None,
        labels: Labels | None = None,
    ) -> None:
        self._assistance, self._labels = assistance, labels
        self._config, self._env, self._checkpoint, self._learner = config, env, checkpoint, learner
        self._store, self._metrics, self._progress = store, metrics, progress
        self._deployed = PolicyAverage(learner.policy, config.policy_average)
        self._patience = patience or Patience()
        self.env_steps = 0
        self._episodes = 0
        self._started = time.monotonic()
        self._earlier_wall = 0.0
        self.demo_cycle_time: float | None = None
        self.timing = ControlTiming(env.spec_task.control_period)
        """Of the episodes since the run was started or resumed."""
        self._recent: deque[EpisodeResult] = deque(maxlen=ROLLING)
        self._update_marks = (self._started, 0, 0)
        self.stop_requested = False
        """Set by a signal handler: demonstrating or training then ends with the running episode, and saves."""
        self._saved = (-1, -1)  # env steps and updates offline at the newest checkpoint

    @property
    def policy(self) -> Policy:
        """What was learned: the policy that is evaluated and deployed."""
        return self._deployed.policy

    @property
    def wall_time(self) -> float:
        """Time spent, earlier parts of a resumed run included [s]."""
        return self._earlier_wall + time.monotonic() - self._started

    def free(self) -> bool:
        """Waits a moment while somebody holds the arm; whether the next episode may begin."""
        return self._assistance is None or self._assistance.wait()

    def demonstrate(self) -> bool:
        """Lets the operator record the demonstrations that are missing, and teaches all of them to the learner.

        Returns:
            True when they are all there, False when stopped before.
        """
        store, total = self._store, self._config.demonstrations
        if late := store.ids()[total:]:
            store.set_aside(late, "recorded after the demonstrations, in a run whose checkpoint is gone")
            self._progress.log(
                f"{len(late)} episodes recorded without a checkpoint were set aside and are played again"
            )
        record_demonstrations(
            self._env if self._assistance is None else self._assistance.demonstrator,
            store,
            episodes=total,
            seed=self._config.seed,
            on_episode=lambda number: self._progress.update(0, demonstrations=f"{number}/{total}"),
            stop=lambda: self.stop_requested,
            patience=self._patience,
            free=self.free,
            log=self._progress.log,
        )
        self._progress.update(0, demonstrations=None)
        if len(store) < total:
            return False
        for number in range(total):
            self._learner.add_demonstration(store.read(demonstration_id(number)))
        if total:
            facts = demonstration_facts(store.summaries(), self._env.spec_task.control_period)
            self.demo_cycle_time = facts["cycle_time_s"]
            self._metrics.write("demonstrations", 0, facts)
            success, seconds = facts["success_rate"], self.demo_cycle_time or 0
            self._progress.log(f"{total} demonstrations, {success:.0%} successful, {seconds:.1f} s each")
        self.save()
        self._progress.restart()
        return True

    def pretrain(self) -> bool:
        """Learns from the demonstrations alone, as long as configured; True when that is done, False when stopped."""
        total, learner = self._config.offline.steps, self._learner
        if learner.offline_updates >= total or self.env_steps:
            return True
        while learner.offline_updates < total and not self.stop_requested:
            logs = learner.pretrain(min(OFFLINE_CALL, total - learner.offline_updates))
            done = learner.offline_updates
            self._metrics.write("offline", done - total, {"offline_updates": done, **logs})
            self._progress.update(0, offline=f"{learner.offline_updates}/{total}")
        self._deployed.restart()
        self._progress.update(0, offline=None)
        self.save()
        return learner.offline_updates >= total

    def learn(self) -> bool:
        """Plays and learns until the configured number of env steps; True when that is reached, False when stopped."""
        rollout = self._rollout()
        config = self._config
        if self._labels is not None:
            self._labels.begin(self._store, self._learner, self._metrics, self._progress)
        while self.env_steps < config.env_steps and not self.stop_requested:
            if not self.free():
                continue
            result = self._play_or_lose(rollout)
            if result is None:
                continue
            self._record_episode(result)
            if self._labels is not None:
                self._labels.wait(self.env_steps, lambda: self.stop_requested)
            before = self.env_steps - result.steps
            if _passed(config.evaluation.curve_interval, before, self.env_steps):
                self._record_curve_point()
            if _passed(config.checkpoint_interval, before, self.env_steps) and self.env_steps < config.env_steps:
                self.save()
        self.save()
        if (logs := self._learner.catch_up()) is not None:  # the last words of a learner in another process
            self._record_update(logs)
        return self.env_steps >= config.env_steps

    def _play_or_lose(self, rollout: Rollout) -> EpisodeResult | None:
        """An episode; of one in which the robot was lost, the steps that it has, or None."""
        try:
            result: EpisodeResult | None = self._play(rollout)
        except RobotLostError as error:
            result = rollout.abandon(f"robot lost: {error}")
            self._patience.lost(error)
            return result
        self._patience.done()
        return result

    def _play(self, rollout: Rollout) -> EpisodeResult:
        """One episode, with the learner working between its steps."""
        config = self._config
        seed = episode_seed(Purpose.TRAINING, config.seed, self._episodes)
        rollout.begin(seed, f"episode-{self._episodes:05d}")
        self._episodes += 1
        result = None
        while result is None:
            result = rollout.step(deterministic=False, last=self.env_steps + 1 == config.env_steps)
            self.env_steps += 1
            self._catch_up()
            self._progress.update(self.env_steps)
        return result

    def _catch_up(self) -> None:
        """Lets the learner work, and takes the outcome into the mean that is deployed."""
        if self._labels is not None:
            self._labels.take(self.env_steps)
        if self._assistance is not None:
            self._assistance.take(self._learner)
        logs = self._learner.catch_up()
        if self._learner.updates:
            self._deployed.follow()
        if logs is not None:
            self._record_update(logs)

    # ------------------------------------------------------------ checkpoints

    def save(self) -> None:
        """Writes a checkpoint; only between episodes, so that nothing of the environment need be saved."""
        reached = self.env_steps, self._learner.offline_updates
        if self._saved == reached:
            return  # it is there; another would only push out the one before it
        save_checkpoint(
            self._checkpoint,
            {
                "learner": self._learner.state_dict(),
                "deployed": self._deployed.state_dict(),
                "env_steps": self.env_steps,
                "episodes": self._episodes,
                "stored": len(self._store),
                "demo_cycle_time": self.demo_cycle_time,
                "wall_time": self.wall_time,
            },
            kind=TRAINING.name,
            metadata={"task": self._config.task, "env_steps": self.env_steps, "updates": self._learner.updates},
        )
        self._saved = reached

    def load(self, state: Mapping[str, Any], *, play_again: bool = True) -> None:
        """Continues from a checkpoint.

        Args:
            state: What was saved.
            play_again: Episodes that the store has beyond it are set aside and played again; otherwise they count, and
                are learned from.

        Raises:
            CheckpointError: if the store holds fewer episodes than the checkpoint knows of.
        """
        self._learner.load_state_dict(state["learner"])
        self._deployed.load_state_dict(state["deployed"])
        self.env_steps, self._episodes = int(state["env_steps"]), int(state["episodes"])
        self.demo_cycle_time, self._earlier_wall = state["demo_cycle_time"], float(state["wall_time"])
        self._update_marks = (self._started, self.env_steps, self._learner.updates)
        self._saved = self.env_steps, self._learner.offline_updates
        if len(self._store) < state["stored"]:
            raise CheckpointError(
                f"the checkpoint knows {state['stored']} episodes, but {self._store.path} holds {len(self._store)}; "
                "bring the missing files back, or start a new run"
            )
        late = self._store.ids()[state["stored"] :]
        if late and not play_again:
            for episode_id in late:
                self._learn_from_record(self._store.read(episode_id))
            self._progress.log(f"learned again from {len(late)} episodes recorded after the checkpoint")
        elif late:
            self._store.set_aside(late, "recorded after the checkpoint that training resumed from")
            self._progress.log(
                f"{len(late)} episodes recorded after the checkpoint were set aside and are played again"
            )

    def _learn_from_record(self, episode: Episode) -> None:
        """Tells the learner an episode that was played before, step by step."""
        learner = self._learner
        learner.on_start(episode.episode_id, episode.observation(0))
        for row in range(len(episode)):
            learner.on_step(episode.step(row), episode.observation(row + 1))
        self.env_steps += len(episode)
        learner.on_end(episode, None)
        self._episodes = max(self._episodes, _number(episode.episode_id) + 1)  # of one that was lost, nothing is left
        self._catch_up()

    # ---------------------------------------------------------------- records

    def _rollout(self) -> Rollout:
        """The robot side: steps go to learner and store as they happen.

        On a robot's clock the learner, for whom frames are encoded once more, is told while the arm moves.
        """
        learner = self._learner
        told, beside = ((), (learner,)) if self._config.realtime else ((learner,), ())
        observers: tuple[Observer, ...] = (*told, StoreRecorder(self._store), self.timing)
        if self._assistance is not None:
            observers = (*observers, *self._assistance.watch)
        if self._labels is not None:
            observers = (*observers, self._labels)
        return Rollout(self._env, learner.policy, learner.perception, self._config.replay.history, observers, beside)

    def _record_update(self, logs: Mapping[str, float]) -> None:
        now, (then, steps, updates) = time.monotonic(), self._update_marks
        seconds = max(now - then, 1e-9)
        self._update_marks = (now, self.env_steps, self._learner.updates)
        rates = {
            "steps_per_s": (self.env_steps - steps) / seconds,
            "updates_per_s": (self._learner.updates - updates) / seconds,
        }
        counts = {"updates": self._learner.updates, "utd": self._learner.update_to_data}
        self._metrics.write("update", self.env_steps, {**counts, **rates, **logs})
        bound = self._env.spec_task.return_range[1] if "q_mean" in logs else None
        self._progress.update(
            self.env_steps,
            updates_per_s=rates["updates_per_s"],
            q_mean=logs.get("q_mean"),
            q_bound=bound if "q_mean" in logs else None,
        )

    def _record_curve_point(self) -> None:
        """A short evaluation without help. It draws nothing from the learner's random streams."""
        config, learner, helped = self._config, self._learner, self._env.interventions
        self._env.interventions = False
        rollout = Rollout(self._env, self.policy, learner.perception, config.replay.history)
        settings = config.evaluation
        point = evaluate(
            rollout,
            episodes=settings.curve_episodes,
            seed=settings.seed,
            purpose=Purpose.CURVE,
            patience=self._patience,
            free=self.free,
        ).summary()
        self._env.interventions = helped
        self._metrics.write("curve", self.env_steps, point)
        self._progress.log(
            f"{self.env_steps} steps: {point['success_rate']:.0%} of {point['episodes']} resets without help"
        )

    def _record_episode(self, result: EpisodeResult) -> None:
        self._recent.append(result)
        load = self._store.load
        if load.not_journalled:
            self._progress.log(
                f"the disk did not keep up: {load.not_journalled} of {result.steps} steps reached it only with the "
                "finished episode; record to a faster disk"
            )
        self._metrics.write(
            "episode",
            self.env_steps,
            {
                "episode": self._episodes - 1,
                "return": result.total_reward,
                "success": None if result.undecided else result.success,
                "assisted": result.assisted,
                "steps": result.steps,
                "cycle_time_s": result.cycle_time,
                "intervention_steps": result.operator_steps,
                "intervention_rate": result.operator_steps / result.steps,
                "takeovers": result.takeovers,
                "force_peak_n": result.force_peak,
                **result.metrics,
                "failure": result.failure,
                "journal_queue_peak": load.queue_peak,
                "not_journalled": load.not_journalled,
                "wall_s": self.wall_time,
            },
        )
        steps = sum(r.steps for r in self._recent)
        self._progress.update(
            self.env_steps,
            success=None if result.undecided else mean(r.success and not r.assisted for r in self._recent),
            intervention_rate=sum(r.operator_steps for r in self._recent) / steps,
        )


def _number(episode_id: str) -> int:
    return int(episode_id.rpartition("-")[2])


def _passed(interval: int, before: int, now: int) -> bool:
    """Whether a multiple of `interval` lies in (before, now]; never for an interval of 0."""
    return interval > 0 and now // interval > before // interval
