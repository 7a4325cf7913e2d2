import os
import sys

import numpy as np
import pytest
from documents import ADD, Example
from environment_contract import EnvironmentContract
from fakes import fake_workcell

from robot_rl.config.components import ReplayConfig, TrainConfig
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.env.environment import SupportsInterventions, without_interventions
from robot_rl.env.registry import environment_names, make_environment
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import StepOrderError, UnknownNameError
from robot_rl.learn.actor import Rollout
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import Perception


@pytest.fixture
def dot(tmp_path, monkeypatch):
    """Makes the environment that docs/add/environment.md shows."""
    return Example.read(ADD / "environment.md").load("dot", tmp_path, monkeypatch).make


@pytest.fixture
def lift(tmp_path, monkeypatch):
    """Makes the workcell that docs/add/task.md shows."""
    return Example.read(ADD / "task.md").load("lift", tmp_path, monkeypatch).make


class TestRobotEnv(EnvironmentContract):
    @pytest.fixture
    def make(self):
        return lambda: RobotEnv(fake_workcell())


class TestSimulatedTask(EnvironmentContract):
    @pytest.fixture
    def make(self):
        return lambda: make_environment("reach")


class TestDocumentedEnvironment(EnvironmentContract):
    @pytest.fixture
    def make(self, dot):
        return lambda: dot(WorkcellOptions())


class TestPendulum(EnvironmentContract):
    @pytest.fixture
    def make(self):
        return lambda: make_environment("gym:Pendulum-v1")


class TestCartPole(EnvironmentContract):
    """Its actions are a choice of two."""

    @pytest.fixture
    def make(self):
        return lambda: make_environment("gym:CartPole-v1")


class TestServedPendulum(EnvironmentContract):
    """In a process of another interpreter; here it is the same one."""

    @pytest.fixture
    def make(self):
        served = EnvironmentConfig(python=sys.executable, max_steps=30, action_repeat=2)
        return lambda: make_environment("gym:Pendulum-v1", WorkcellOptions(environment=served))


def interpreter_with(package):
    """The interpreter that `ROBOT_RL_<PACKAGE>_PYTHON` names; these packages pin versions that clash with ours."""
    variable = f"ROBOT_RL_{package.upper()}_PYTHON"
    if variable not in os.environ:
        pytest.skip(f"no interpreter with {package}: set {variable}")
    return os.environ[variable]


class TestDmControl(EnvironmentContract):
    @pytest.fixture
    def make(self):
        settings = EnvironmentConfig(python=interpreter_with("dm_control"), max_steps=30)
        return lambda: make_environment("dm_control:cartpole/swingup", WorkcellOptions(environment=settings))


class TestMetaWorld(EnvironmentContract):
    @pytest.fixture
    def make(self):
        settings = EnvironmentConfig(python=interpreter_with("metaworld"), max_steps=30)
        return lambda: make_environment("metaworld:reach-v3", WorkcellOptions(environment=settings))


def demonstrated(env, seeds):
    """Yield the length of an episode that the expert leads to success, for each seed [steps]."""
    for seed in seeds:
        env.start(seed, "a", demonstrate=True)
        infos = [env.advance(np.zeros(4, np.float32))]
        while not infos[-1].ended:
            infos.append(env.advance(np.zeros(4, np.float32)))
        assert infos[-1].success
        yield len(infos)


def panda(**settings):
    """gym-hil's environment with a cube anywhere and the package's own check of a grasp."""
    options = ("random_block_position=true", "reset_delay_seconds=0.0", "reward_type=dense")
    settings = {"reward": "success", "discrete_gripper": True, "expert": "gym_hil_pick", "options": options, **settings}
    config = EnvironmentConfig(python=interpreter_with("gym_hil"), **settings)
    return make_environment("gym:gym_hil:gym_hil/PandaPickCube-v0", WorkcellOptions(environment=config))


class TestGymHil(EnvironmentContract):
    @pytest.fixture
    def make(self):
        return lambda: panda(max_steps=30)


def test_the_expert_of_gym_hil_grasps_and_lifts():
    env = panda()
    assert all(steps < 40 for steps in demonstrated(env, range(5)))
    env.close()


def test_the_expert_of_fetch_brings_the_block_to_its_goal():
    config = EnvironmentConfig(
        python=interpreter_with("gymnasium_robotics"), reward="success", expert="fetch_pick_and_place"
    )
    env = make_environment("gym:gymnasium_robotics:FetchPickAndPlace-v4", WorkcellOptions(environment=config))
    assert all(steps < 30 for steps in demonstrated(env, range(5)))
    env.close()


class TestDocumentedTask(EnvironmentContract):
    @pytest.fixture
    def make(self, lift):
        return lambda: RobotEnv(lift(WorkcellOptions()))


def test_the_documented_task_can_be_done(lift):
    env = RobotEnv(lift(WorkcellOptions()))
    env.start(0, "a")
    up = np.array([0.0, 0.0, -1.0], np.float32)  # the tool looks down
    infos = [env.advance(up)]
    while not infos[-1].ended:
        infos.append(env.advance(up))
    assert (infos[-1].success, infos[-1].recorded.reward) == (True, 1.0)


def test_a_learner_learns_in_an_environment_without_a_robot(dot):
    env = dot(WorkcellOptions())
    config = TrainConfig(demonstrations=0, warmup_steps=20, replay=ReplayConfig(capacity=500, batch_size=16))
    perception = Perception(env.observation_specs)
    learner = LocalLearner(env.environment_spec, perception, config)
    rollout = Rollout(env, learner.policy, perception, config.replay.history, [learner])
    for seed in range(2):
        rollout.begin(seed, f"episode-{seed}")
        result = None
        while result is None:
            result = rollout.step(deterministic=False)
            learner.catch_up()
    assert learner.updates == (learner.env_steps - 20) * config.update_to_data > 0


def test_an_environment_is_found_by_name_and_a_task_is_one(dot):
    assert isinstance(make_environment("reach"), RobotEnv)
    assert environment_names() == ["dot"], "it is installed for the test"
    assert make_environment("dot").environment_spec == dot(WorkcellOptions()).environment_spec
    with pytest.raises(UnknownNameError, match="reach"):
        make_environment("raech")


def test_interventions_are_off_inside_and_as_before_afterwards(dot):
    env = RobotEnv(fake_workcell(), interventions=True)
    assert isinstance(env, SupportsInterventions)
    with without_interventions(env):
        assert not env.interventions
    assert env.interventions
    with without_interventions(dot(WorkcellOptions())):
        pass  # it has none


def test_without_an_operator_there_is_no_demonstration(dot):
    env = dot(WorkcellOptions())
    with pytest.raises(StepOrderError, match="dot has no operator"):
        env.start(0, "a", demonstrate=True)
