import gymnasium
import numpy as np
import pytest
from documents import ADD, Example
from environment_contract import EnvironmentContract
from fakes import fake_workcell

from robot_rl.config.components import ReplayConfig, TrainConfig
from robot_rl.env.environment import SupportsInterventions, without_interventions
from robot_rl.env.gymnasium_environment import GymnasiumEnvironment
from robot_rl.env.registry import environment_names, make_environment
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import SpecError, StepOrderError, UnknownNameError
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


class Spaces(gymnasium.Env):
    def __init__(self, observation, action):
        self.observation_space, self.action_space = observation, action


BOX = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)


@pytest.mark.parametrize(
    ("observation", "action", "expected"),
    [
        (BOX, gymnasium.spaces.Discrete(3), "valid: a bounded Box"),
        (BOX, gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32), "valid: a bounded Box"),
        (gymnasium.spaces.Dict({"pose": BOX}), BOX, "pose .*state/<what>"),
        (gymnasium.spaces.Discrete(3), BOX, "valid: a Box"),
    ],
)
def test_spaces_of_another_kind_are_refused(observation, action, expected):
    with pytest.raises(SpecError, match=expected):
        GymnasiumEnvironment(Spaces(observation, action), "odd", max_steps=5)
