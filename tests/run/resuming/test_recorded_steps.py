"""A training that goes on from what was recorded after its checkpoint averages its policy as if it had played it."""

from unittest.mock import MagicMock

import pytest
import torch
from fakes import fake_workcell

from robot_rl.config.components import TrainConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.run.demonstrate import record_demonstrations
from robot_rl.run.training_loop import Training


class CountingLearner:
    """Its policy is one number, the updates so far, one for each step."""

    def __init__(self):
        self.policy, self.updates, self.offline_updates, self._steps = torch.nn.Linear(1, 1, bias=False), 0, 0, 0
        self.policy.weight.data.zero_()

    def load_state_dict(self, state):
        pass

    def on_start(self, episode_id, observation):
        pass

    def on_step(self, step, next_observation):
        self._steps += 1

    def on_end(self, episode, result):
        pass

    def catch_up(self):
        self.updates = self._steps
        self.policy.weight.data.fill_(float(self.updates))


def test_the_mean_follows_each_step(tmp_path):
    config, learner = TrainConfig(policy_average=1.0), CountingLearner()
    with EpisodeStore.create(tmp_path / "store", {}) as store:
        record_demonstrations(RobotEnv(fake_workcell()), store, episodes=2, seed=0)
        steps = sum(row.length for row in store.summaries())
        training = Training(
            config, env=None, checkpoint=tmp_path / "c", learner=learner, store=store, record=MagicMock()
        )
        training.deployed.load_state_dict = lambda state: None
        beginning = dict.fromkeys(("env_steps", "episodes", "stored", "wall_time"), 0)
        training.load({**beginning, "learner": None, "deployed": None, "demo_cycle_time": None}, play_again=False)
    assert training.env_steps == learner.updates == steps > 2
    mean = float(training.deployed.policy.weight)
    assert mean == pytest.approx((steps + 1) / 2), "the mean of 1 ... n"
