import copy

import pytest
import torch
from tiny_heads import FEATURES, batch, sac

from robot_rl.config.components import EngineConfig
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.engine.engine import Engine


def tensors(learner):
    return [
        value for module in (learner.policy, learner.critic, learner.critic_target) for value in module.parameters()
    ]


MINIBATCHES = 2


def data_of(spec, minibatches=MINIBATCHES):
    data = batch(FEATURES, n=minibatches)
    return data if spec else data._replace(images=None, next_images=None)


def started(config, spec):
    torch.set_num_threads(1)
    learner = sac(spec, gripper=True)
    return learner, Engine(learner, config)


def updated(config, spec, updates=3, minibatches=MINIBATCHES):
    learner, engine = started(config, spec)
    return learner, [engine.update(data_of(spec, minibatches)) for _ in range(updates)]


@pytest.fixture(scope="module")
def compiled():
    """A learner, its compiled engine, and the logs of its first updates: to compile takes half a minute.

    It learns from features, as one from a state alone has nothing that this one has not.
    """
    learner, engine = started(EngineConfig(compile=True), FEATURES)
    return learner, engine, [engine.update(data_of(FEATURES)) for _ in range(3)]


@pytest.mark.slow
def test_compiled_losses_are_the_plain_ones(compiled):
    learner, _, logs = compiled
    plain, plain_logs = updated(EngineConfig(), FEATURES)
    for expected, got in zip(plain_logs, logs, strict=True):
        assert expected.keys() == got.keys()
        for name in expected:
            torch.testing.assert_close(got[name], expected[name], rtol=1e-4, atol=1e-5)
    for expected, got in zip(tensors(plain), tensors(learner), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("spec", [None, FEATURES], ids=["state", "features"])
def test_bfloat16_is_near_and_keeps_float32_where_it_must(spec):
    plain, plain_logs = updated(EngineConfig(), spec, updates=1, minibatches=1)
    low, logs = updated(EngineConfig(precision="bfloat16"), spec, updates=1, minibatches=1)
    assert all(value.dtype == torch.float32 for value in logs[0].values())
    for name in ("critic_loss", "gripper_loss", "q_mean", "target_mean"):  # those of the parameters both start from
        torch.testing.assert_close(logs[0][name], plain_logs[0][name], rtol=0.05, atol=0.05)
    assert all(value.dtype == torch.float32 for value in tensors(low))
    assert any(not torch.equal(a, b) for a, b in zip(tensors(plain), tensors(low), strict=True))


@pytest.mark.slow
def test_a_compiled_learner_goes_on_from_a_plain_ones_state(compiled):
    learner, engine, _ = compiled
    plain, _ = updated(EngineConfig(), FEATURES, updates=1)
    learner.load_state_dict(copy.deepcopy(plain.state_dict()))
    expected, got = plain.update(data_of(FEATURES)), engine.update(data_of(FEATURES))
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=1e-4, atol=1e-5)


def test_in_bfloat16_each_minibatch_sees_what_the_last_one_changed():
    one = batch(FEATURES, n=1)
    again = Batch._make(None if column is None else column.expand(4, *column.shape[1:]) for column in one)
    losses = [
        Engine(sac(FEATURES, gripper=True), EngineConfig(precision=precision)).update(again)["critic_loss"]
        for precision in ("float32", "bfloat16")
    ]
    torch.testing.assert_close(losses[1], losses[0], rtol=0.05, atol=0.0)  # twice as large where it does not
