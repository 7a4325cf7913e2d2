"""The learner with each of our algorithms: the schedule of updates, resuming, and states of earlier revisions."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.config.components import AlgorithmConfig, IQLConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import CheckpointError, ConfigError, DataError, DivergedError
from robot_rl.learn.learner import Learner

TASK = EnvironmentSpec("line", max_steps=20, control_period=0.1, action_size=3)
CONFIG = TrainConfig(
    demonstrations=2,
    warmup_steps=4,
    update_to_data=2,
    sac=SACConfig(hidden_sizes=(8,)),
    offline=IQLConfig(steps=6),
    replay=ReplayConfig(capacity=200, batch_size=8, demo_fraction=1.0),
)


def learner(name="sac", seed=0, **changes):
    return Learner(TASK, PerceptSpec(3), replace(CONFIG, seed=seed, algorithm=AlgorithmConfig(name=name), **changes))


def percepts(rng):
    while True:
        yield Percept(rng.normal(size=3).astype(np.float32))


def demonstrate(learner, rng, steps=10):
    seen = percepts(rng)
    for _ in range(2):
        learner.demos.begin(next(seen))
        for t in range(steps):
            last = t == steps - 1
            learner.demos.append(
                Transition(rng.uniform(-1, 1, 3).astype(np.float32), float(last), last, False, 1), next(seen)
            )


def play(learner, rng, steps):
    seen = percepts(rng)
    learner.begin(next(seen))
    for _ in range(steps):
        learner.append(Transition(rng.uniform(-1, 1, 3).astype(np.float32), 0.0, False, False, 1), next(seen))
        learner.catch_up()


def parameters(learner):
    return torch.cat([value.flatten() for value in learner.policy.policy_state().values()])


@pytest.mark.parametrize("name", ["sac", "iql", "bc"])
def test_updates_follow_the_steps(name):
    mine, rng = learner(name), np.random.default_rng(0)
    demonstrate(mine, rng)
    before = parameters(mine)
    play(mine, rng, 4)
    assert mine.updates == 0, "the first steps only warm up"
    play(mine, rng, 6)
    assert (mine.env_steps, mine.updates, mine.update_to_data) == (10, 12, 2.0)
    assert not torch.equal(before, parameters(mine))


@pytest.mark.parametrize("name", ["sac", "iql", "bc"])
def test_what_the_critics_expect_is_known_once_they_have_learned_and_asking_changes_nothing(name):
    mine, other = learner(name), learner(name)
    for one in (mine, other):
        demonstrate(one, np.random.default_rng(0))
    assert mine.value is None
    values = []
    for _ in range(3):
        for one in (mine, other):
            play(one, np.random.default_rng(1), 8)
        values.append(mine.value)
    assert all((value is None) == (name == "bc") for value in values)
    assert name == "bc" or (np.isfinite(values).all() and len(set(values)) == 3)
    assert torch.equal(parameters(mine), parameters(other))


@pytest.mark.parametrize("offline", [2, 6])
@pytest.mark.parametrize("name", ["sac", "iql", "bc"])
def test_a_saved_learner_continues_bit_for_bit(name, offline):
    mine, rng = learner(name), np.random.default_rng(0)
    demonstrate(mine, rng)
    mine.pretrain(offline)
    assert mine.offline_updates == offline
    other = learner(name, seed=5)
    other.load_state_dict(mine.state_dict())
    for one in (mine, other):
        if offline < CONFIG.offline.steps:
            one.pretrain(CONFIG.offline.steps - offline)
        play(one, np.random.default_rng(1), 8)
    assert torch.equal(parameters(mine), parameters(other))
    third = learner(name, seed=5)
    third.load_state_dict(mine.state_dict())
    assert (third.env_steps, third.updates, third.offline_updates) == (8, 8, 6)


def as_before(state):
    """The same state as it was written when SAC was the only algorithm."""
    rest = {key: value for key, value in state.items() if key not in ("algorithm", "algorithm_name", "updates")}
    sac = {**state["algorithm"], "format": 3, "critic_updates": state["updates"]}
    return {**rest, "offline": sac.pop("pretraining"), "sac": sac}


@pytest.mark.parametrize(("offline", "steps"), [(2, 0), (6, 0), (0, 8), (6, 8)])
def test_a_state_of_the_revision_before_is_read(offline, steps):
    mine, rng = learner(), np.random.default_rng(0)
    demonstrate(mine, rng)
    if offline:
        mine.pretrain(offline)
    play(mine, rng, steps) if steps else None
    other = learner(seed=5)
    other.load_state_dict(as_before(mine.state_dict()))
    assert (other.env_steps, other.updates, other.offline_updates) == (steps, mine.updates, offline)
    for one in (mine, other):
        if 0 < offline < CONFIG.offline.steps:
            one.pretrain(CONFIG.offline.steps - offline)
        play(one, np.random.default_rng(1), 8)
    assert torch.equal(parameters(mine), parameters(other))


def test_a_checkpoint_of_another_algorithm_is_refused():
    with pytest.raises(CheckpointError, match=r"of algorithm iql.*algorithm\.name=sac"):
        learner("sac").load_state_dict(learner("iql").state_dict())


def test_pretraining_needs_demonstrations_and_an_algorithm_that_can():
    with pytest.raises(DataError, match="nothing to learn from"):
        learner().pretrain(2)
    gripper = Learner(replace(TASK, action_size=4, choices=3), PerceptSpec(3), CONFIG)
    seen = percepts(np.random.default_rng(0))
    gripper.demos.begin(next(seen))
    gripper.demos.append(Transition(np.zeros(4, np.float32), 1.0, True, False, 1), next(seen))
    with pytest.raises(ConfigError, match="gripper"):
        gripper.pretrain(2)


def test_learning_that_diverges_is_stopped_before_it_is_saved():
    mine, rng = learner(sac=SACConfig(hidden_sizes=(8,), learning_rate=1e30)), np.random.default_rng(0)
    demonstrate(mine, rng)
    with pytest.raises(DivergedError, match="left the finite numbers"):
        play(mine, rng, 15)


@pytest.mark.parametrize("success", [True, False])
def test_a_word_on_a_demonstration_counts_as_one_on_an_online_episode(success):
    mine, rng = learner(), np.random.default_rng(0)
    seen = percepts(rng)
    steps = [Transition(np.zeros(3, np.float32), 0.0, False, t == 3, 1) for t in range(4)]
    mine.demonstrate([next(seen) for _ in range(5)], steps, "demonstration-0000")
    play(mine, rng, 2)
    mine.label_episode("demonstration-0000", True)
    mine.label_episode("demonstration-0000", success)
    mine.label_episode("of nobody", True)
    state = mine.demos.state_dict()
    assert state["reward"][:4].tolist() == [0.0, 0.0, 0.0, float(success)]
    assert state["terminated"][:4].tolist() == [False, False, False, success]
