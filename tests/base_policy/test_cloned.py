"""A base cloned from cameras learns where what it is to do happens, and says in its file whether it did."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.base_policy.contract import BaseSetup, Stamped, check_fit, make_base
from robot_rl.config.components import BaseConfig, EncoderConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.schema import Episode, Source
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import BasePolicyError
from robot_rl.learn.perception import make_perception
from robot_rl.spec import ArraySpec

SIZE, MARK, STEPS = 64, 16, 6
TASK = EnvironmentSpec("line", max_steps=30, control_period=0.1, action_size=6)
OBSERVATIONS = {
    "state/tcp_pose": ArraySpec((6,), scale=1.0),
    "images/front": ArraySpec((SIZE, SIZE, 3), "uint8"),
}
CONFIG = TrainConfig(
    task="line",
    observations="pixels",
    base=BaseConfig(kind="chunk", updates=200, horizon=2, history=1),
    replay=ReplayConfig(batch_size=32),
    encoder=EncoderConfig("conv", ("front",), SIZE, crops=1, shift=0),
)


def setup_of(goal_weight=0.1, state=None, **base):
    config = replace(CONFIG, sac=SACConfig(goal_weight=goal_weight), base=replace(CONFIG.base, **base))
    return BaseSetup("", TASK, OBSERVATIONS, config, state)


def demonstration(number, *, success=True):
    """The tool goes from the middle to where the white square is, 1 at an edge of the frame, and says nothing else."""
    goal = np.random.default_rng(number).uniform(-1, 1, 2)
    frame = np.zeros((SIZE, SIZE, 3), np.uint8)
    row, column = ((goal + 1) / 2 * (SIZE - MARK)).astype(int)
    frame[row : row + MARK, column : column + MARK] = 255
    pose = np.zeros((STEPS + 1, 6), np.float32)
    pose[:, :2] = np.linspace(0, goal, STEPS + 1)
    action, last = np.zeros((STEPS, 6), np.float32), np.arange(STEPS) == STEPS - 1
    return Episode(
        episode_id=f"demo-{number}",
        observations={"state/tcp_pose": pose, "images/front": np.repeat(frame[None], STEPS + 1, 0)},
        action=action,
        action_policy=action,
        source=np.full(STEPS, Source.SCRIPT, np.int8),
        reward=last.astype(np.float32),
        terminated=last,
        truncated=np.zeros(STEPS, bool),
        stamp_obs=10**9 + 10**8 * np.arange(STEPS + 1),
        stamp_action=10**9 + 10**8 * np.arange(STEPS),
        metadata={"seed": number, "success": success},
    )


def trained(setup, **labels):
    base = make_base(setup)
    base.train([demonstration(number, **labels) for number in range(20)], lambda *report: None)
    return base


@pytest.fixture(scope="module")
def base():
    return trained(setup_of(goal_weight=10.0))


def estimate(base, episode):
    """The way to the goal that a base sees at the first step of an episode."""
    perception = make_perception(OBSERVATIONS, CONFIG)
    seen = perception.view({key: rows[0] for key, rows in episode.observations.items()})
    state, images = torch.from_numpy(seen.state)[None], torch.from_numpy(seen.images)[None]
    with torch.no_grad():
        return base.flow.head.to_goal(base.flow.condition(state, images))[0].numpy()


def errors_of(base):
    """Errors of the ways that it sees at the first steps of its demonstrations, and these ways; (episodes, 6)."""
    episodes = [demonstration(number) for number in range(20)]
    ways = np.stack([episode.observations["state/tcp_pose"][-1] for episode in episodes])
    return np.abs(np.stack([estimate(base, episode) for episode in episodes]) - ways), np.abs(ways)


def test_it_sees_the_way_to_where_a_demonstration_ends(base):
    errors, ways = errors_of(base)
    assert errors[:, :2].mean() < 0.5 * ways[:, :2].mean()
    assert errors[:, 2:].mean() < 0.1


def test_where_the_end_is_not_known_to_be_the_goal_nothing_is_learned_of_it():
    errors, ways = errors_of(trained(setup_of(goal_weight=10.0), success=None))
    assert errors[:, :2].mean() > 0.8 * ways[:, :2].mean()


def history():
    observations = demonstration(0).observations
    return [Stamped(10**9, {key: rows[0] for key, rows in observations.items()})]


def planned(base):
    base.begin(3, None)
    return base.plan(history()).actions


def test_a_file_says_whether_it_was_taught_the_way(base):
    plain = trained(setup_of(goal_weight=0.0, updates=20))
    before = {key: value for key, value in plain.state_dict().items() if key != "sees_goal"}  # of an older version
    for one, state in ((base, base.state_dict()), (plain, plain.state_dict()), (plain, before)):
        for weight in (0.0, 0.1):
            other = make_base(setup_of(weight, state))
            np.testing.assert_array_equal(planned(other), planned(one))
            assert other.identity == one.identity


@pytest.mark.parametrize(("taught", "wanted", "words"), [(0.1, 0.0, "was"), (0.0, 0.1, "was not")])
def test_noise_is_learned_with_what_its_network_sees(taught, wanted, words):
    one = trained(setup_of(taught, updates=2, correction="noise"))
    check_fit(one, setup_of(taught, correction="noise"))
    said = rf"its network {words} taught the way to the goal, and here sac\.goal_weight={wanted:g}; take the"
    with pytest.raises(BasePolicyError, match=said):
        check_fit(one, setup_of(wanted, correction="noise"))
