"""Our tasks in the terms of dm_env: its own suite of tests, ends and discounts, seeds."""

import unittest

import dm_env
import numpy as np
import pytest
from dm_env import test_utils

from robot_rl.errors import ConfigError
from robot_rl.gym.dm_environment import DmEnvironment


class TestConformance(test_utils.EnvironmentTestMixin, unittest.TestCase):
    """The suite that comes with dm_env; an episode of `reach` ends within these actions."""

    def make_object_under_test(self):
        return DmEnvironment("reach", seed=0)

    def make_action_sequence(self):
        for _ in range(70):
            yield np.array([1.0, -1.0, 0.5], np.float32)


@pytest.fixture
def env():
    made = DmEnvironment("reach", seed=1)
    yield made
    made.close()


def test_success_ends_an_episode_with_discount_0(env):
    step = env.reset()
    while not step.last():
        step = env.step(np.clip(step.observation["state/target"] / 0.01, -1, 1).astype(np.float32))
    assert (step.reward, step.discount, env.info["is_success"]) == (1.0, 0.0, True)
    assert env.step(np.zeros(3, np.float32)).first()
    assert env.info == {}


def test_the_step_limit_ends_it_with_discount_1(env):
    step = env.reset()
    while not step.last():
        step = env.step(np.zeros(3, np.float32))
        assert (step.reward, step.discount) == (0.0, 1.0)
    assert not env.info["is_success"]


def test_a_seed_decides_all_episodes():
    def targets(seed):
        made = DmEnvironment("reach", seed=seed)
        seen = [made.reset().observation["state/target"].tolist() for _ in range(2)]
        made.close()
        return seen

    assert targets(3) == targets(3)
    assert targets(3)[0] != targets(3)[1]
    assert targets(3) != targets(4)


def test_pixels_and_wrong_arguments_are_as_with_gymnasium():
    made = DmEnvironment("reach", seed=0, obs="pixels", cameras=["front"], image_size=32)
    spec = made.observation_spec()["images/front"]
    assert (spec.shape, spec.dtype, spec.maximum.max()) == ((32, 32, 3), np.uint8, 255)
    assert made.reset().step_type is dm_env.StepType.FIRST
    made.close()
    with pytest.raises(ConfigError, match="obs='image'"):
        DmEnvironment("reach", obs="image")
