"""The learner: replay memory, algorithm, and the schedule of updates.

It receives percepts and steps from the actor, and makes the updates that are due for them in `catch_up`. It depends
on no robot and no environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from robot_rl.config.components import TrainConfig
from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.replay.memories import Memories
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.data.sparse_reward import SUCCESS_REWARD, success_reward
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import CheckpointError, ConfigError, DataError, DivergedError
from robot_rl.learn.algorithms.base import AlgorithmSetup, make_algorithm
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.horizon import with_horizon
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.engine.hardware import check_device
from robot_rl.learn.networks.networks import Policy, make_policy
from robot_rl.learn.parallel.ranks import ALONE, Ranks

LOG_INTERVAL = 100
"""Learner calls whose logs are averaged into one record."""
EXAMPLES = 512
"""Images by whose spread frozen features are standardised, once, before the first update."""


class Learner:
    """Replay, RLPD mixing and the configured algorithm, with an update-to-data ratio that holds.

    Args:
        task: Facts of the task: action size, gripper, return range.
        percepts: Format of the percepts that it receives.
        config: Configuration of the run.
        robots: Share of each robot of a fleet in what is sampled, by name; None: there is one robot, without a name.
        ranks: The processes that learn as one. All receive the same in the same order, and each learns from its part.

    Raises:
        ConfigError: if the device is missing, or the settings contradict each other.
        UnknownNameError: if there is no such algorithm.
    """

    def __init__(
        self,
        task: EnvironmentSpec,
        percepts: PerceptSpec,
        config: TrainConfig,
        robots: Mapping[str, float] | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        check_device(config.device)
        if config.algorithm.chunk > task.max_steps:
            steps = f"an episode of {task.name} has at most {task.max_steps} steps"
            raise ConfigError(f"algorithm.chunk={config.algorithm.chunk}: {steps}; set no more than that")
        self._config, self._ranks = with_horizon(config, task.max_steps), ranks
        config, part = self._config, (ranks.rank, ranks.size)
        self._rng = np.random.default_rng((config.seed, 0))
        generator = torch.Generator(config.device).manual_seed(config.seed)
        returns = task.return_range
        if returns is not None:
            returns = returns[0] - percepts.potential, returns[1]  # Q' = Q - Phi
        policy = make_policy(task, percepts, config, generator, ranks)
        sizes = task.action_size, task.max_steps, task.return_range
        self.memories = Memories(percepts, *sizes, config, robots, part, policy.chunk)
        """All that is remembered here."""
        self.demos, self.online = self.memories.demos, self.memories.online
        self.algorithm = make_algorithm(AlgorithmSetup(policy=policy, return_range=returns, config=config))
        self._mixer = self.memories.mixer(self.algorithm.n_step, self.algorithm.discount)
        # A recorded update cannot wait for others.
        self._engine = Engine(self.algorithm, replace(config.engine, capture=config.engine.capture and ranks.size == 1))
        self._success_reward = SUCCESS_REWARD if task.return_range is None else task.return_range[1]
        self.env_steps = 0
        """Online steps received."""
        self.updates = 0
        """Updates so far: minibatches that the algorithm was given online."""
        self.offline_updates = 0
        """Updates on the demonstrations alone, before the first online step."""
        self._learned = config.warmup_steps  # online steps whose updates were made, or are not made at all
        self._potential = 0.0  # of the newest online observation
        self._standardised = False  # whether features are standardised, which happens once
        self._logs: list[dict[str, torch.Tensor]] = []

    @property
    def policy(self) -> Policy:
        """The policy that acts; it is the learner's own, so it is always the newest."""
        return self.algorithm.policy

    @property
    def minibatches(self) -> int:
        """Updates for the env step that was learned from last."""
        return self._config.updates_at(self._learned)

    @property
    def update_to_data(self) -> float:
        """Updates per online step since learning started, as measured."""
        learning = self.env_steps - self._config.warmup_steps
        return self.updates / learning if learning > 0 else 0.0

    @property
    def value(self) -> float | None:
        """Return that the critics expect from the newest online observation on; None where nothing was learned yet."""
        newest = self.online.newest(self._config.replay.history)
        if newest is None or self.updates + self.offline_updates == 0:
            return None
        state, images = (None if part is None else torch.as_tensor(part).to(self._config.device) for part in newest)
        value = self.algorithm.value(state, images) if state is not None else None
        return None if value is None else float(value[0]) + self._potential  # Q = Q' + Phi

    # Input.

    def demonstrate(self, percepts: Sequence[Percept], steps: Sequence[Transition], episode_id: str = "") -> None:
        """Receive a demonstration: T + 1 observations, and the T steps between them, the last of which ends it.

        Raises:
            DataError: if there are other numbers of them.
        """
        if len(percepts) != len(steps) + 1:
            raise DataError(f"a demonstration has {len(percepts)} observations and {len(steps)} steps")
        self.demos.begin(percepts[0], episode_id)
        for step, percept in zip(steps, percepts[1:], strict=True):
            self.demos.append(step, percept)

    def begin(self, percept: Percept, episode_id: str = "") -> None:
        """Start an online episode."""
        self.online.begin(percept, episode_id)
        self._potential = percept.potential

    def append(self, step: Transition, next_percept: Percept) -> None:
        """Receive an online step; see `ReplayBuffer.append`."""
        masked = step.undecided and self._config.reward.unlabelled == "masked"
        self.online.append(step._replace(undecided=masked), next_percept)
        self._potential = next_percept.potential
        self.env_steps += 1

    def relabelled(self, rows: Relabelled) -> None:
        """Receive transitions derived from an online episode, with other goals; ignored where none are kept."""
        if self.memories.hindsight is not None:
            self.memories.hindsight.add(rows)

    def label_episode(self, episode_id: str, success: bool, since: int = 0) -> None:
        """Receive the label of an episode, also of a demonstration; one that replay has dropped is ignored."""
        verdict = success_reward(success, self._success_reward), success, since if success else 0
        if not self.online.decide(episode_id, *verdict):
            self.demos.decide(episode_id, *verdict)

    def reward_episode(self, episode_id: str, closeness: np.ndarray) -> None:
        """Receive learned rewards of an episode; one that replay has dropped is ignored. See `LearnerPort`."""
        # The return of a policy that stays at the goal is that of a success: sum over t of gamma^t (1 - gamma) = 1.
        rewards = ((1.0 - self.algorithm.discount) * self._success_reward * closeness).astype(np.float32)
        if not self.online.relabel(episode_id, rewards):
            self.demos.relabel(episode_id, rewards)

    # Updates.

    def pretrain(self, updates: int) -> dict[str, float]:
        """Make updates on the demonstrations alone, before the first online step.

        Args:
            updates: Number of minibatches.

        Returns:
            Mean logs.

        Raises:
            ConfigError: if the algorithm does not learn from demonstrations alone.
            DataError: if there are no demonstrations.
            DivergedError: if a loss is not finite.
        """
        self._standardise()
        rows = []
        at_once = self._config.updates_at(0)
        for done in range(0, updates, at_once):
            count = min(at_once, updates - done)
            rows.append(self.algorithm.pretrain(self._batch(count)))
            self._check_finite(rows[-1])
            self.offline_updates += count
        if self.offline_updates >= self._config.offline.steps:
            self.algorithm.end_pretraining()
        return _means(rows)

    def catch_up(self) -> dict[str, float] | None:
        """Make the updates that are due for the steps received; return mean logs every `LOG_INTERVAL` calls.

        Raises:
            DivergedError: if a loss is not finite.
        """
        logs = None
        while self._learned < self.env_steps:
            self._learned += 1
            logs = self._update() or logs
        return logs

    def _update(self) -> dict[str, float] | None:
        """Call the algorithm once, with the minibatches of one env step."""
        self._standardise()
        scheduled, count = self.algorithm.advance(self._learned), self.minibatches
        if isinstance(self._config.update_to_data, dict):
            scheduled |= {"update_to_data": count}
        logs = self._engine.update(self._batch(count))
        logs |= {name: torch.tensor(float(value), device=self._config.device) for name, value in scheduled.items()}
        self.updates += count
        self._check_finite(logs)
        self._logs.append(logs)
        if len(self._logs) < LOG_INTERVAL:
            return None
        means = _means(self._logs)
        self._logs.clear()
        return means | self.memories.sizes | self._expected_returns()

    def _expected_returns(self) -> dict[str, float]:
        """Return what the critics expect of states in demonstrations and online, where both are known, on average."""
        rng, values = np.random.default_rng((self._config.seed, self.env_steps)), {}  # apart from that of the updates
        for name, memory in self.memories.parts.items():
            if len(memory) == 0:
                continue
            sample = memory.sample(
                self._config.replay.batch_size,
                rng,
                n_step=self.algorithm.n_step,
                discount=self.algorithm.discount,
                history=self._config.replay.history,
            )
            device = self._config.device
            images = None if sample.images is None else torch.as_tensor(sample.images).to(device)
            value = self.algorithm.value(torch.as_tensor(sample.observation).to(device), images)
            if value is not None:
                values[f"q_{name}"] = float(value.mean())
        return values

    def _batch(self, minibatches: int) -> Batch:
        """Sample minibatches onto the learner's device, where the policy standardises them by the newest moments."""
        if (moments := self.memories.moments) is not None:
            self.policy.head.set_moments(moments.mean, moments.deviation)
        sample = self._mixer.sample(minibatches, self._ranks.source(self._rng))
        device = self._config.device
        return Batch._make(None if column is None else torch.as_tensor(column).to(device) for column in sample)

    def _standardise(self) -> None:
        """Set the standardisation of the head by sampled images, unless it is set."""
        if self._standardised:
            return
        self._standardised = True
        size = self._config.replay.batch_size
        examples = self._batch(-(-EXAMPLES // size)).images
        if examples is not None:
            self.policy.head.standardise(examples.flatten(0, 1))
            self._ranks.agree(list(self.policy.head.buffers()))

    def _check_finite(self, logs: Mapping[str, torch.Tensor]) -> None:
        """Check every call, so that no checkpoint is ever written after learning has diverged."""
        if torch.stack(list(logs.values())).isfinite().all():
            return
        bad = sorted(name for name, value in logs.items() if not value.isfinite())
        of_actor = set(bad) <= {"actor_loss", "actor_gradient", "entropy", "temperature"}
        cure = "or what was raised of sac's temperature and imitation" if of_actor else "or keep sac.clamp_targets on"
        raise DivergedError(
            f"{', '.join(bad)} left the finite numbers after {self.updates} online and {self.offline_updates} offline "
            f"updates; lower sac.learning_rate, {cure}"
        )

    # Checkpoints.

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on."""
        return {
            "algorithm_name": self._config.algorithm.name,
            "algorithm": self.algorithm.state_dict(),
            **self.memories.state_dict(),
            "rng": self._rng.bit_generator.state,
            "env_steps": self.env_steps,
            "updates": self.updates,
            "offline_updates": self.offline_updates,
            "learned": self._learned,
            "standardised": self._standardised,
            "logs": [dict(row) for row in self._logs],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned; the next update is then the same, bit for bit on a CPU.

        Raises:
            CheckpointError: if it is the state of another algorithm, or of networks of other sizes.
        """
        state = in_present_form(state)
        mine, saved = self._config.algorithm.name, state["algorithm_name"]
        if saved != mine:
            raise CheckpointError(f"the checkpoint is of algorithm {saved}, this run has algorithm.name={mine}")
        self.algorithm.load_state_dict(state["algorithm"])
        self.memories.load_state_dict(state)
        self._rng.bit_generator.state = state["rng"]
        self.env_steps, self.updates = int(state["env_steps"]), int(state["updates"])
        self.offline_updates = int(state["offline_updates"])
        done = max(self._config.warmup_steps, self.env_steps)  # an earlier revision saved when all updates were made
        self._learned = int(state.get("learned", done))
        self._standardised = bool(state.get("standardised", self.updates + self.offline_updates > 0))
        self._logs = [dict(row) for row in state["logs"]]
        self.algorithm.advance(self._learned if self.updates else 0)  # the state may come from other settings
        self._engine.restart()

    def close(self) -> None:
        """End what it started, which is nothing where it learns alone."""
        self._ranks.close()


def in_present_form(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a learner's state; one of the time when SAC was the only algorithm is converted."""
    if "sac" not in state:
        return state
    rest = {key: value for key, value in state.items() if key not in ("sac", "offline")}
    algorithm = {**state["sac"], "pretraining": state.get("offline")}
    converted = {"algorithm_name": "sac", "algorithm": algorithm, "updates": algorithm["critic_updates"]}
    return {"offline_updates": 0, **rest, **converted}


def _means(rows: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)  # a fork may begin to log more
    return {name: float(torch.stack([row[name] for row in rows if name in row]).mean()) for name in names}
