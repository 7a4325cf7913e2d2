"""Experience in, gradients out: the learner's memory, algorithm and counters.

It knows nothing of robots or environments: it is told observations and steps, by whoever plays, and asked to catch up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from robot_rl.config.components import TrainConfig
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.demo_mixing import DemoMixer
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.task import TaskSpec
from robot_rl.errors import DivergedError
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.iql import IQL
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.engine.hardware import check_device
from robot_rl.learn.networks.networks import Policy, make_policy

LOG_INTERVAL = 100
"""Learner calls whose logs are averaged into one record."""
EXAMPLES = 512
"""Images by whose spread frozen features are standardised, once, before the first update."""


class Learner:
    """Replay, RLPD mixing and SAC, with an update-to-data ratio that holds.

    Args:
        task: The task's facts: action size, gripper, return range.
        percepts: What it is told of observations.
        config: The run's configuration.

    Raises:
        ConfigError: if the device is not there.
    """

    def __init__(self, task: TaskSpec, percepts: PerceptSpec, config: TrainConfig) -> None:
        check_device(config.device)
        self._config = config
        sizes = percepts.state_size, task.action_size, percepts.images, percepts.pose, config.device
        rows, shaped = max(2, config.demonstrations * (task.max_steps + 1)), percepts.potential > 0
        self.demos = ReplayBuffer(rows, *sizes, shaped=shaped)
        self.online = ReplayBuffer(config.replay.capacity, *sizes, shaped=shaped)
        self._mixer = DemoMixer(self.demos, self.online, config.replay, config.sac.n_step, config.sac.discount)
        self._rng = np.random.default_rng((config.seed, 0))
        generator = torch.Generator(config.device).manual_seed(config.seed)
        policy = make_policy(task, percepts, config, generator)
        low, high = task.return_range
        self.sac = SAC(policy, return_range=(low - percepts.potential, high), config=config.sac)  # Q' = Q - Phi
        self._engine = Engine(self.sac, config.engine)
        self._success_reward = task.return_range[1]
        self.env_steps = 0
        """Online steps received."""
        self.offline_updates = 0
        """Critic updates on the demonstrations alone, before the first online step."""
        self._offline: IQL | None = None
        self._logs: list[dict[str, torch.Tensor]] = []

    @property
    def policy(self) -> Policy:
        """The policy that acts; it is the learner's own, so it is always the newest."""
        return self.sac.policy

    @property
    def updates(self) -> int:
        """Critic updates so far."""
        return self.sac.critic_updates

    @property
    def update_to_data(self) -> float:
        """Critic updates per online step since learning started, as measured."""
        learning = self.env_steps - self._config.warmup_steps
        return self.updates / learning if learning > 0 else 0.0

    # What the learner is told.

    def begin(self, percept: Percept, episode_id: str = "") -> None:
        """An online episode started."""
        self.online.begin(percept, episode_id)

    def append(
        self,
        action: np.ndarray,
        reward: float,
        terminated: bool,
        truncated: bool,
        source: int,
        next_percept: Percept,
        *,
        undecided: bool = False,
    ) -> None:
        """An online step was taken; see `ReplayBuffer.append`."""
        undecided = undecided and self._config.reward.unlabelled == "masked"
        self.online.append(action, reward, terminated, truncated, source, next_percept, undecided=undecided)
        self.env_steps += 1
        self._offline = None  # its state value is of no use any more

    def judge(self, episode_id: str, success: bool, since: int = 0) -> None:
        """A label says whether an online episode succeeded; one that was forgotten needs no judgement."""
        reward = success_reward(success, self._success_reward)
        self.online.decide(episode_id, reward, success, since if success else 0)

    # What the learner does.

    def learn_offline(self, updates: int) -> dict[str, float]:
        """Makes so many updates on the demonstrations alone, by IQL; returns mean logs.

        Raises:
            ConfigError: if the policy is one that IQL does not train.
            DataError: if there are no demonstrations.
            DivergedError: if a loss is not finite.
        """
        if self._offline is None:
            self._standardise()
            self._offline = IQL(self.sac, self._config.offline)
        rows = []
        for done in range(0, updates, self._config.update_to_data):
            count = min(self._config.update_to_data, updates - done)
            rows.append(self._offline.update(self._batch(count)))
            self._check_finite(rows[-1])
            self.offline_updates += count
        if self.offline_updates >= self._config.offline.steps:
            self._offline.conclude()
        return _means(rows)

    def catch_up(self) -> dict[str, float] | None:
        """Makes the updates that are owed for the steps received; every `LOG_INTERVAL` calls returns mean logs.

        Raises:
            DivergedError: if a loss is not finite.
        """
        owed = (self.env_steps - self._config.warmup_steps) * self._config.update_to_data - self.updates
        logs = None
        for _ in range(owed // self._config.update_to_data):
            logs = self._update() or logs
        return logs

    def _update(self) -> dict[str, float] | None:
        """One call of the algorithm: the critic updates of one env step, then one of actor and temperature."""
        if self.updates == 0 and self.offline_updates == 0:
            self._standardise()
        logs = self._engine.update(self._batch(self._config.update_to_data))
        self._check_finite(logs)
        self._logs.append(logs)
        if len(self._logs) < LOG_INTERVAL:
            return None
        return self._take_logs()

    def _batch(self, minibatches: int) -> Batch:
        """Minibatches on the learner's device."""
        sample = self._mixer.sample(minibatches, self._rng)
        device = self._config.device
        return Batch._make(None if column is None else torch.as_tensor(column).to(device) for column in sample)

    def _standardise(self) -> None:
        """Shows the head what images look like."""
        size = self._config.replay.batch_size
        examples = self._batch(-(-EXAMPLES // size)).images
        if examples is not None:
            self.policy.head.standardise(examples.flatten(0, 1))

    def _take_logs(self) -> dict[str, float]:
        logs = _means(self._logs)
        self._logs.clear()
        return logs

    def _check_finite(self, logs: Mapping[str, torch.Tensor]) -> None:
        """At every call, so that no checkpoint is ever written after learning went astray."""
        if torch.stack(list(logs.values())).isfinite().all():
            return
        bad = sorted(name for name, value in logs.items() if not value.isfinite())
        raise DivergedError(
            f"{', '.join(bad)} left the finite numbers after {self.updates} critic updates; "
            "lower sac.learning_rate, or keep sac.clamp_targets on"
        )

    # Checkpoints.

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next update depends on."""
        return {
            "sac": self.sac.state_dict(),
            "online": self.online.state_dict(),
            "demos": self.demos.state_dict(),
            "rng": self._rng.bit_generator.state,
            "env_steps": self.env_steps,
            "offline_updates": self.offline_updates,
            "offline": self._offline.state_dict() if self._offline is not None else None,
            "logs": [dict(row) for row in self._logs],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from what `state_dict` gave; the next update is then the same, bit for bit on a CPU."""
        self.offline_updates = int(state.get("offline_updates", 0))  # of before there were any
        self._offline = None
        if (offline := state.get("offline")) is not None:
            self._offline = IQL(self.sac, self._config.offline)
            self._offline.load_state_dict(offline)
        self.sac.load_state_dict(state["sac"])
        self.online.load_state_dict(state["online"])
        self.demos.load_state_dict(state["demos"])
        self._rng.bit_generator.state = state["rng"]
        self.env_steps = int(state["env_steps"])
        self._logs = [dict(row) for row in state["logs"]]
        self._engine.restart()


def _means(rows: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, float]:
    return {name: float(torch.stack([row[name] for row in rows]).mean()) for name in rows[0]}
