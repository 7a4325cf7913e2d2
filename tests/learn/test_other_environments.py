"""What environments without a declared scale, range of returns or demonstrations need of the learner."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.config.components import AlgorithmConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.load import load_config
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.row_moments import RowMoments
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError, DataError
from robot_rl.learn.algorithms.horizon import horizon_discount
from robot_rl.learn.learner import Learner
from robot_rl.learn.networks.policy_average import PolicyAverage

TASK = EnvironmentSpec("line", max_steps=20, control_period=0.1, action_size=2)
CONFIG = TrainConfig(
    demonstrations=1,
    warmup_steps=4,
    update_to_data=2,
    sac=SACConfig(hidden_sizes=(8,)),
    replay=ReplayConfig(capacity=300, batch_size=8, history=(0, 1)),
)
UNSCALED = PerceptSpec(3, unscaled=((1, 3),))
OFFSET, SPREAD = np.array([0.0, 500.0, -3.0]), np.array([1.0, 40.0, 0.01])


def play(learner, seed, steps, reward=0.0):
    rng = np.random.default_rng(seed)
    rows = [(OFFSET + SPREAD * rng.normal(size=3)).astype(np.float32) for _ in range(steps + 1)]
    logs = {}
    learner.begin(Percept(rows[0]))
    for row in rows[1:]:
        learner.append(Transition(rng.uniform(-1, 1, 2).astype(np.float32), reward, False, False, 0), Percept(row))
        logs = learner.catch_up() or logs
    return rows, logs


@pytest.mark.parametrize("algorithm", ["sac", "iql"])
def test_networks_see_what_has_no_scale_standardised_and_the_rest_as_it_is(algorithm):
    learner = Learner(TASK, UNSCALED, replace(CONFIG, algorithm=AlgorithmConfig(name=algorithm)))
    rows = np.stack(play(learner, 0, 200)[0])
    stacked = torch.from_numpy(np.concatenate([rows, rows], axis=1))
    seen = learner.policy.head(stacked).numpy()
    assert np.array_equal(seen[:, 0], rows[:, 0])
    for column in (1, 2, 4, 5):
        assert abs(seen[:, column].mean()) < 0.1
        assert seen[:, column].std() == pytest.approx(1.0, abs=0.1)
    far = torch.tensor([[0.0, 1e6, -3.0] * 2])
    assert learner.policy.head(far)[0, 1] == 10.0, "what is far off is clipped"


def test_the_moments_go_with_the_policy_and_with_the_checkpoint():
    learner = Learner(TASK, UNSCALED, CONFIG)
    average = PolicyAverage(learner.policy, 0.5)
    play(learner, 0, 60)
    average.follow()
    state = torch.tensor([[0.3, 510.0, -3.01] * 2])
    assert torch.equal(average.policy.head(state), learner.policy.head(state))
    resumed = Learner(TASK, UNSCALED, CONFIG)
    resumed.load_state_dict(learner.state_dict())
    play(learner, 1, 30)
    play(resumed, 1, 30)
    assert torch.equal(resumed.policy.head(state), learner.policy.head(state))
    for mine, theirs in zip(resumed.policy.parameters(), learner.policy.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_moments_are_those_of_numpy():
    rows = OFFSET + SPREAD * np.random.default_rng(0).normal(size=(500, 3))
    moments = RowMoments(3)
    assert moments.deviation.tolist() == [1, 1, 1]
    for row in rows:
        moments.add(row)
    assert moments.mean == pytest.approx(rows.mean(0))
    assert moments.deviation == pytest.approx(rows.std(0))


def test_without_a_range_of_returns_nothing_is_clamped():
    learner = Learner(TASK, PerceptSpec(3), CONFIG)
    _, logs = play(learner, 0, 250, reward=-8.0)
    assert "clamped" not in logs
    assert logs["target_mean"] < -8.0
    with pytest.raises(ConfigError, match=r"hl_gauss needs the range of returns.*environment\.return_range"):
        Learner(TASK, PerceptSpec(3), replace(CONFIG, sac=SACConfig(critic_loss="hl_gauss")))


def test_a_reward_that_alone_leaves_the_range_is_refused():
    learner = Learner(replace(TASK, return_range=(0.0, 1.0)), PerceptSpec(3), CONFIG)
    play(learner, 0, 3, reward=1.0)
    with pytest.raises(DataError, match=r"a reward of -0.5 alone leaves the range of returns \[0, 1\].*return_range"):
        play(learner, 0, 1, reward=-0.5)


def test_targets_that_the_clamp_moves_far_are_counted():
    learner = Learner(replace(TASK, return_range=(0.0, 1.0)), PerceptSpec(3), CONFIG)
    assert play(learner, 0, 220, reward=1.0)[1]["clamped"] > 0.9, "returns of 20 do not fit into 1"
    fine = Learner(replace(TASK, return_range=(0.0, 25.0)), PerceptSpec(3), CONFIG)
    assert play(fine, 0, 220, reward=1.0)[1]["clamped"] < 0.05


def test_no_demonstration_is_dropped_in_silence():
    learner = Learner(TASK, PerceptSpec(3), CONFIG)
    rng = np.random.default_rng(0)

    def demonstrate():
        learner.demos.begin(Percept(rng.normal(size=3).astype(np.float32)))
        for _ in range(15):
            learner.demos.append(
                Transition(np.zeros(2, np.float32), 0.0, False, False, 1),
                Percept(rng.normal(size=3).astype(np.float32)),
            )

    for count in range(1, 5):
        demonstrate()
        assert len(learner.demos) == 15 * count


@pytest.mark.parametrize(("steps", "discount"), [(40, 0.96), (100, 0.96), (250, 0.984), (500, 0.992), (5000, 0.995)])
def test_the_discount_follows_the_horizon_unless_it_is_set(steps, discount):
    assert horizon_discount(steps) == pytest.approx(discount)
    task = replace(TASK, max_steps=steps)
    assert Learner(task, PerceptSpec(3), CONFIG).algorithm.discount == pytest.approx(discount)
    set_to = replace(CONFIG, sac=SACConfig(discount=0.9))
    assert Learner(task, PerceptSpec(3), set_to).algorithm.discount == 0.9


@pytest.mark.parametrize(("steps", "early", "late"), [(40, 0.2, 0.03), (100, 0.2, 0.03), (200, 0.6, 0.127)])
def test_imitation_lasts_for_as_many_episodes_unless_it_is_set(steps, early, late):
    task = replace(TASK, max_steps=steps)
    algorithm = Learner(task, PerceptSpec(3), CONFIG).algorithm
    weights = [algorithm.advance(at)["imitation"] for at in (0, 1000, 8000)]
    assert weights == pytest.approx([1.0, early, late], abs=1e-3)
    set_to = replace(CONFIG, sac=SACConfig(imitation={0: 0.5, 2000: 0.0}))
    assert Learner(task, PerceptSpec(3), set_to).algorithm.advance(1000)["imitation"] == 0.25


def test_defaults_for_an_environment_of_others_are_its_own_and_yield_to_what_is_set():
    config = load_config(None, ["task=gym:Pendulum-v1", "replay.history=[0, 2]"])
    assert (config.demonstrations, config.warmup, config.sac.n_step) == (0, "uniform", 1)
    assert config.replay.history == (0, 2)
    based = load_config(None, ["task=gym:Pendulum-v1", "base.kind=clone", "demonstrations=5"])
    assert (based.warmup, based.warmup_steps, based.env_steps) == ("policy", 100, 50_000), "a base explores by itself"
    pixels = load_config(None, ["task=gym:Pendulum-v1", "observations=pixels"])
    assert (pixels.demonstrations, pixels.processes, pixels.update_to_data) == (0, 2, 4)
    assert load_config(None, ["task=reach"]).warmup == "policy"
