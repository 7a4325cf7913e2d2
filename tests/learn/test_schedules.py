"""A learner follows the schedules of its settings, env step by env step, and goes on in them after a checkpoint."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.config.components import AlgorithmConfig, BaseConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.learn import learner as learner_module
from robot_rl.learn.learner import Learner
from robot_rl.link.handshake import Agreement

TASK, PERCEPTS = EnvironmentSpec("task", 30, 0.1, 2, return_range=(0.0, 1.0)), PerceptSpec(3)
CONFIG = TrainConfig(
    demonstrations=0,
    warmup_steps=4,
    update_to_data={0: 1, 10: 3},
    replay=ReplayConfig(batch_size=4, history=(0,)),
    sac=SACConfig(hidden_sizes=(8,), learning_rate={0: 1e-2, 20: 1e-3}, target_entropy_per_action={0: -0.1, 20: -1.0}),
)


def learner(**sac):
    return Learner(TASK, PERCEPTS, replace(CONFIG, sac=replace(CONFIG.sac, **sac)))


def percept(step):
    return Percept(np.random.default_rng(step).normal(size=3).astype(np.float32))


def play(mine, first, last):
    """Steps `first` to before `last` of one long episode; return updates and logs after each."""
    rows = []
    for step in range(first, last):
        if step == 0:
            mine.begin(percept(0))
        action = np.random.default_rng([1, step]).uniform(-1, 1, 2).astype(np.float32)
        mine.append(Transition(action, 0.0, False, False, 0), percept(step + 1))
        rows.append((mine.updates, mine.catch_up(), mine.updates))
    return rows


def parameters(mine):
    modules = mine.state_dict()["algorithm"]["modules"]
    return torch.cat([value.flatten() for module in modules.values() for value in module.values()])


def test_the_ratio_holds_from_its_step_on():
    made = [after - before for before, _, after in play(learner(), 0, 15)]
    assert made == [0] * 4 + [1] * 5 + [3] * 6, "step 10 is the first of the new ratio"


def test_what_is_scheduled_is_logged_with_its_value(monkeypatch):
    monkeypatch.setattr(learner_module, "LOG_INTERVAL", 1)
    logs = [row for _, row, _ in play(learner(), 0, 22)]
    assert logs[:4] == [None] * 4
    assert logs[4]["learning_rate"] == pytest.approx(1e-2 - 5 * 9e-3 / 20)
    assert (logs[4]["update_to_data"], logs[9]["update_to_data"]) == (1.0, 3.0)
    assert logs[21]["learning_rate"] == pytest.approx(1e-3)
    assert logs[21]["target_entropy"] == pytest.approx(-2.0), "two actions, -1 each"


def test_a_flat_schedule_is_the_number():
    flat, number = (
        learner(learning_rate={0: 2**-9}, target_entropy_per_action=-0.5),
        learner(learning_rate=2**-9, target_entropy_per_action=-0.5),
    )
    play(flat, 0, 12)
    play(number, 0, 12)
    assert torch.equal(parameters(flat), parameters(number))


def test_the_rate_takes_effect():
    slow = learner(learning_rate={0: 1e-12, 8: 1e-12, 9: 1e-2})
    start = parameters(slow)
    play(slow, 0, 8)
    assert torch.allclose(parameters(slow), start, atol=1e-8)
    play(slow, 8, 12)
    assert not torch.allclose(parameters(slow), start, atol=1e-3)


@pytest.mark.parametrize("name", ["sac", "iql", "bc"])
def test_going_on_from_a_checkpoint_is_bitwise_the_same(name):
    config = replace(CONFIG, algorithm=AlgorithmConfig(name), replay=replace(CONFIG.replay, demo_fraction=1.0))
    whole, first, second = (Learner(TASK, PERCEPTS, config) for _ in range(3))
    play(whole, 0, 25)
    play(first, 0, 13)
    second.load_state_dict(first.state_dict())
    play(second, 13, 25)
    assert second.updates == whole.updates
    assert torch.equal(parameters(second), parameters(whole))


def test_a_set_temperature_is_not_tuned():
    mine = learner(temperature={0: 0.5, 20: 0.1})
    play(mine, 0, 20)
    assert mine.state_dict()["algorithm"]["log_temperature"].exp() == pytest.approx(0.1)
    tuned = learner()
    play(tuned, 0, 20)
    assert tuned.state_dict()["algorithm"]["log_temperature"].exp() != pytest.approx(0.01)


@pytest.mark.parametrize("steps", [0, 3, 13])
def test_a_policy_from_other_settings_corrects_within_the_bound_of_these(steps):
    theirs, mine = {0: 1.0, 20: 2.0}, {0: 0.125, 10: 0.125, 14: 0.25}
    percepts = PerceptSpec(3, proposal=(0, 2))
    source, fork = (
        Learner(TASK, percepts, replace(CONFIG, base=BaseConfig(kind="scripted", bound=bound)))
        for bound in (theirs, mine)
    )
    play(source, 0, steps)
    fork.load_state_dict(source.state_dict())
    reached = 0 if steps <= CONFIG.warmup_steps else steps
    assert float(fork.policy.bound) == np.interp(reached, list(mine), list(mine.values()))
    source.load_state_dict(source.state_dict())
    assert float(source.policy.bound) == np.float32(np.interp(reached, list(theirs), list(theirs.values())))


def test_the_other_side_of_a_link_reads_the_same_schedule():
    agreement = Agreement(TASK, PERCEPTS, CONFIG)
    assert Agreement.of(agreement.hello()).config == CONFIG
