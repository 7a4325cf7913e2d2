"""The loop of a training: demonstrations in, a policy out, with an operator able to intervene at every step.

`Training` alternates between the robot side (`Rollout`) and the learner (`LearnerPort`), records every episode and
writes checkpoints between episodes, from which a resumed run continues to the same result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from robot_rl.base_policy.run_base import RunBase
from robot_rl.config.components import TrainConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.environment import Environment, SupportsGivingUp, disable_interventions, without_interventions
from robot_rl.env.episode_observer import EpisodeResult, Observer
from robot_rl.learn.actor import Deriver, Rollout, StoreRecorder
from robot_rl.learn.learner_port import LearnerPort, send_record
from robot_rl.learn.networks.policy_average import PolicyAverage
from robot_rl.run.assistance import Assistance, LabelSource
from robot_rl.run.demonstrate import demonstration_facts, demonstration_id, record_demonstrations
from robot_rl.run.episode_retry import EpisodeRetry
from robot_rl.run.evaluation import HeldOut, evaluate
from robot_rl.run.resume import keep_checkpoint, recorded_after, save_training
from robot_rl.run.training_record import TrainingRecord
from robot_rl.seeding import Purpose, episode_seed

OFFLINE_CALL = 200
"""Updates offline between two checks for a stop request; a second or two."""
COMPARED = ("success_rate", "return_mean", "cycle_time_s")
"""What is recorded of the newest policy beside the deployed one."""


class Training:
    """One training run.

    Args:
        config: The run's configuration.
        env: The robot, its task and its operator.
        checkpoint: Path of the checkpoint.
        learner: The learner, in this process or another.
        store: The store of the recorded episodes.
        record: Metrics and progress.
        assistance: The human operator beside the training, None without one.
        advisor: Watches the online episodes, and calls the operator where the policy may fail; None: nobody is called.
        retry: Retries of episodes in which the robot is lost; None raises the error.
        labels: Labels that decide later whether an online episode succeeded; None if that is known at its end.
        hindsight: Derives steps with other goals from each episode; None: nothing is.
        base: Proposes the actions that the policy corrects; None: it acts alone.
        aside: Entered for each evaluation during the training, e.g. to put the scene back afterwards.

    Attributes:
        deployed: The average of the policy that is evaluated and deployed.
        env_steps: Online steps so far.
        demo_cycle_time: Mean time of a successful demonstration [s]; None if there is none.
        stop_requested: Set by a signal handler; the training then ends with the running episode, and saves.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        env: Environment,
        checkpoint: Path,
        learner: LearnerPort,
        store: EpisodeStore,
        record: TrainingRecord,
        assistance: Assistance | None = None,
        advisor: Observer | None = None,
        retry: EpisodeRetry | None = None,
        labels: LabelSource | None = None,
        hindsight: Deriver | None = None,
        base: RunBase | None = None,
        aside: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> None:
        self._aside = aside
        self._assistance, self._advisor, self._labels = assistance, advisor, labels
        self._config, self._env, self._checkpoint, self._learner = config, env, checkpoint, learner
        self._store, self.record = store, record
        self.deployed = PolicyAverage(learner.policy, config.policy_average)
        self._hindsight, self.base = hindsight, base
        self._retry = (retry or EpisodeRetry()).until(lambda: self.stop_requested)
        self.env_steps = 0
        self._episodes = 0
        self._player: Rollout | None = None
        self.demo_cycle_time: float | None = None
        self.stop_requested = False
        self._recorded: dict[str, str] = {}  # fingerprints of the episodes up to the newest checkpoint
        self._effort: Mapping[str, int] = {}  # what the operator did in the episodes up to the checkpoint resumed from
        self._saved = (-1, -1)  # env steps and updates offline at the newest checkpoint

    def run(self, *, resumed: bool) -> bool:
        """Demonstrate, pretrain and learn; return True when all is done, False when stopped.

        Args:
            resumed: A checkpoint was loaded, so the demonstrations are there.
        """
        return (resumed or self.demonstrate()) and self.pretrain() and self.learn()

    def request_stop(self) -> None:
        """End the training with the running episode; for a signal handler."""
        self.record.log("stopping at the end of this episode, then saving; once more to stop at once without saving")
        self.stop_soon()

    def stop_soon(self) -> None:
        """End it with the running episode, and do not wait for a person; from any thread."""
        self.stop_requested = True
        if isinstance(self._env, SupportsGivingUp):
            self._env.give_up()

    def may_start(self) -> bool:
        """Return whether the next episode may start; wait a moment while somebody holds the arm."""
        return self._assistance is None or self._assistance.may_start()

    def demonstrate(self) -> bool:
        """Let the operator record the demonstrations that are missing, and send all of them to the learner.

        Returns:
            True when all are recorded and encoded, False when stopped before.
        """
        store, total = self._store, self._config.demonstrations
        if late := store.ids()[total:]:
            store.set_aside(late, "recorded after the demonstrations, in a run whose checkpoint is gone")
            self.record.log(f"{len(late)} episodes recorded without a checkpoint were set aside and are played again")
        record_demonstrations(
            self._env if self._assistance is None else self._assistance.demonstrator,
            store,
            episodes=total,
            seed=self._config.seed,
            on_episode=lambda number: self.record.progress.update(0, demonstrations=f"{number}/{total}"),
            stop=lambda: self.stop_requested,
            retry=self._retry,
            may_start=self.may_start,
            log=self.record.log,
        )
        self.record.progress.update(0, demonstrations=None)
        if len(store) < total:
            return False
        demonstrations = (store.read(demonstration_id(number)) for number in range(total))
        if (base := self.base) is not None:
            base.prepare(self._checkpoint.parent, demonstrations, self.record.base)
            self.record.progress.update(0, base=None)
            base.give(self._learner)
            self.deployed.restart()
            again = (store.read(demonstration_id(number)) for number in range(total))
            demonstrations = (base.with_proposals(episode) for episode in again)
        for number, episode in enumerate(demonstrations, 1):
            self._learner.add_demonstration(episode)
            self.record.progress.update(0, encoded=f"{number}/{total}")
            if self.stop_requested:
                return False
        self.record.progress.update(0, encoded=None)
        if total:
            facts = demonstration_facts(store.summaries(), self._env.environment_spec.control_period)
            self.demo_cycle_time = facts["cycle_time_s"]
            self.record.demonstrations(facts)
        self.record.progress.restart()
        if self.base is not None and self._config.evaluation.curve_interval:
            self._record_curve_point()  # what the corrections start from
        self.save()
        return True

    def pretrain(self) -> bool:
        """Learn from the demonstrations alone, as long as configured; return True when done, False when stopped."""
        total, learner = self._config.offline.steps, self._learner
        if learner.offline_updates >= total or self.env_steps:
            return True
        while learner.offline_updates < total and not self.stop_requested:
            logs = learner.pretrain(min(OFFLINE_CALL, total - learner.offline_updates))
            self.record.offline(learner.offline_updates, total, logs)
        self.deployed.restart()
        self.record.progress.update(0, offline=None)
        done: bool = learner.offline_updates >= total
        self.save()
        return done

    def learn(self) -> bool:
        """Play and learn until the configured number of env steps; return True when reached, False when stopped."""
        self.begin_learning()
        while self.env_steps < self._config.env_steps and not self.stop_requested:
            self.play_next()
        return self.end_learning()

    def begin_learning(self) -> None:
        """Make ready to play; call it once, before `play_next`."""
        self._player = self._rollout()
        self.record.effort.recount(self._store, self._effort)
        if self._labels is not None:
            self._labels.begin(self._store, self._learner, self.record)

    def play_next(self) -> EpisodeResult | None:
        """Play the next episode, learn from it, and save and evaluate where that is due.

        Returns:
            The episode in numbers; None if it could not start yet, or the robot was lost in its first step.
        """
        if not self.may_start():
            return None
        config, rollout = self._config, cast("Rollout", self._player)
        result = self._play_or_lose(rollout)
        if self._hindsight is not None:
            self._hindsight.deliver(self._learner)
        if result is None:
            return None
        load = self._store.load
        self.record.episode(self.env_steps, self._episodes - 1, result, load.queue_peak, load.not_journalled)
        if self._labels is not None:
            self._labels.wait(self.env_steps, lambda: self.stop_requested)
        before = self.env_steps - result.steps
        if _passed(config.evaluation.curve_interval, before, self.env_steps):
            self._record_curve_point()
        if _passed(config.checkpoint_interval, before, self.env_steps) and self.env_steps < config.env_steps:
            self.save()
        return result

    def end_learning(self) -> bool:
        """Save and finish the last updates; return whether the configured number of env steps is reached."""
        self.save()
        if (logs := self._learner.catch_up()) is not None:  # the last updates of a learner in another process
            self.record.update(self.env_steps, self._learner, logs)
        return self.env_steps >= self._config.env_steps

    def _play_or_lose(self, rollout: Rollout) -> EpisodeResult | None:
        """Play an episode; return its result, of a lost one the result of its steps, or None if it has none."""
        with without_interventions(self._env) if self._operator_gone() else contextlib.nullcontext():
            return self._retry.attempt(partial(self._play, rollout), rollout.abandon)

    def _operator_gone(self) -> bool:
        """Return whether the next episode begins after the time for which its scripted operator helps."""
        seed = episode_seed(Purpose.TRAINING, self._config.seed, self._episodes)
        minutes = self._config.intervention.drawn(seed).minutes
        passed = self.env_steps * self._env.environment_spec.control_period
        return minutes is not None and passed >= 60.0 * minutes

    def _play(self, rollout: Rollout) -> EpisodeResult:
        """Play one episode, with the learner working between its steps."""
        config = self._config
        seed = episode_seed(Purpose.TRAINING, config.seed, self._episodes)
        rollout.begin(seed, f"episode-{self._episodes:05d}")
        self._episodes += 1
        result = None
        while result is None:
            last = self.env_steps + 1 == config.env_steps
            alone = config.warmup == "base" and self.env_steps < config.warmup_steps
            source = self._warmup_source()
            result = rollout.step(deterministic=False, last=last, uniform=source, base_alone=alone)
            self.env_steps += 1
            self._catch_up()
            self.record.progress.update(self.env_steps)
        return result

    def _warmup_source(self) -> np.random.Generator | None:
        """Return the source of the next action while it is drawn uniformly, else None; a resumed run draws the same."""
        config = self._config
        if config.warmup != "uniform" or self.env_steps >= config.warmup_steps:
            return None
        return np.random.default_rng(episode_seed(Purpose.WARMUP, config.seed, self.env_steps))

    def _catch_up(self) -> None:
        """Send new labels to the learner, let it work, and update the average policy."""
        if self._labels is not None:
            self._labels.deliver(self.env_steps)
        if self._assistance is not None:
            self._assistance.exchange(self._learner)
        logs = self._learner.catch_up()
        if self._learner.updates:
            self.deployed.follow()
        if logs is not None:
            self.record.update(self.env_steps, self._learner, logs)

    # ------------------------------------------------------------ checkpoints

    def save(self) -> None:
        """Write a checkpoint; only between episodes, so that nothing of the environment need be saved."""
        reached = self.env_steps, self._learner.offline_updates
        if self._saved == reached:
            return  # another would only replace the one before it
        self._recorded = self._store.fingerprints(self._recorded)
        effort = self.record.effort.counts
        save_training(
            self._checkpoint,
            {
                "learner": self._learner.state_dict(),
                "deployed": self.deployed.state_dict(),
                "env_steps": self.env_steps,
                "episodes": self._episodes,
                "stored": len(self._store),
                "recorded": self._recorded,
                "effort": effort if effort.get("episodes") == len(self._store) else {},
                "demo_cycle_time": self.demo_cycle_time,
                "wall_time": self.record.wall_time,
                "base": None if self.base is None else self.base.facts(),
            },
            {"task": self._config.task, "env_steps": self.env_steps, "updates": self._learner.updates},
        )
        self._saved = reached
        keep_checkpoint(self._checkpoint, self.env_steps, self._config.keep_checkpoints)

    def load(self, state: Mapping[str, Any], *, play_again: bool = True) -> None:
        """Continue from a checkpoint.

        Args:
            state: Content of the checkpoint.
            play_again: Set aside the episodes that the store has beyond the checkpoint, and play them again; otherwise
                they count, and the learner gets them.

        Raises:
            CheckpointError: if the store holds fewer episodes than the checkpoint.
        """
        self._learner.load_state_dict(state["learner"])
        self.deployed.load_state_dict(state["deployed"])
        self.env_steps, self._episodes = int(state["env_steps"]), int(state["episodes"])
        self.demo_cycle_time = state["demo_cycle_time"]
        self._recorded = dict(state.get("recorded", {}))  # older checkpoints have none
        self._effort = state.get("effort", {})
        self.record.resume(self.env_steps, self._learner.updates, float(state["wall_time"]))
        self._saved = self.env_steps, self._learner.offline_updates
        keep_checkpoint(self._checkpoint, self.env_steps, self._config.keep_checkpoints)  # if it was killed before
        late = recorded_after(self._store, int(state["stored"]))
        if late and not play_again:
            for episode_id in late:
                self._learn_from_record(episode_id)
            self.record.log(f"learned again from {len(late)} episodes recorded after the checkpoint")
        elif late:
            self._store.set_aside(late, "recorded after the checkpoint that training resumed from")
            self.record.log(f"{len(late)} episodes recorded after the checkpoint were set aside and are played again")

    def _learn_from_record(self, episode_id: str) -> None:
        """Learn from an episode that was played before, step by step, as when it was played."""
        episode = self._store.read(episode_id)
        send_record(self._learner, episode, self._after_recorded_step)
        self._episodes = max(self._episodes, _number(episode.episode_id) + 1)  # of one that was lost, nothing is left
        if self._hindsight is not None:
            self._hindsight.on_end(episode, None)
            self._hindsight.deliver(self._learner)

    def _after_recorded_step(self) -> None:
        self.env_steps += 1
        self._catch_up()

    # ---------------------------------------------------------------- records

    def _rollout(self) -> Rollout:
        """Return the robot side: steps go to learner and store as they happen.

        On a robot's clock the learner, for which frames are encoded once more, gets them while the arm moves.
        """
        learner = self._learner
        first, beside = ((), (learner,)) if self._config.realtime else ((learner,), ())
        observers: tuple[Observer, ...] = (*first, StoreRecorder(self._store), self.record.timing, self.record.effort)
        if self._assistance is not None:
            observers = (*observers, *self._assistance.observers)
        observers = (*observers, *(one for one in (self._labels, self._hindsight, self._advisor) if one is not None))
        history = self._config.replay.history
        base = None if self.base is None else self.base.player
        return Rollout(self._env, learner.policy, learner.perception, history, observers, beside, base)

    def _record_curve_point(self) -> None:
        """Record a short evaluation without help, which draws nothing from the learner's random streams.

        One that a stop interrupts is not recorded.
        """
        point = self._evaluate()
        if point is not None and self._config.evaluation.curve_newest:
            newest = self._evaluate(newest=True)
            point = newest and point | {f"newest_{name}": newest[name] for name in COMPARED}
        if point is not None:
            self.record.curve(self.env_steps, point)

    def held_out(
        self, observers: Sequence[Observer] = (), judged: Callable[[EpisodeResult], EpisodeResult] | None = None
    ) -> HeldOut:
        """Return the episodes of the final evaluation, to play them one by one; nobody takes over any more."""
        disable_interventions(self._env)
        return HeldOut(self._alone(observers), self._config.evaluation.seed, retry=self._retry, judged=judged)

    def _alone(self, observers: Sequence[Observer] = (), *, newest: bool = False) -> Rollout:
        """Return the robot side of an evaluation, of the deployed policy or the newest."""
        policy = self._learner.policy if newest else self.deployed.policy
        base = None if self.base is None else self.base.player
        history = self._config.replay.history
        return Rollout(self._env, policy, self._learner.perception, history, observers, base=base)

    def _evaluate(self, *, newest: bool = False) -> dict[str, Any] | None:
        """Return how the deployed policy, or the newest, does in a short evaluation; None if that was interrupted."""
        rollout = self._alone(newest=newest)
        settings = self._config.evaluation
        with without_interventions(self._env), self._aside():
            evaluation = evaluate(
                rollout,
                episodes=settings.curve_episodes,
                seed=settings.seed,
                purpose=Purpose.CURVE,
                retry=self._retry,
                may_start=self.may_start,
                stop=lambda: self.stop_requested,
            )
        return None if self.stop_requested else evaluation.summary()


def _number(episode_id: str) -> int:
    return int(episode_id.rpartition("-")[2])


def _passed(interval: int, before: int, now: int) -> bool:
    """Return whether a multiple of `interval` lies in (before, now]; never for an interval of 0."""
    return interval > 0 and now // interval > before // interval
