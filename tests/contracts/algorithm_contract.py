"""What the learner and its engine expect of an algorithm. Subclass `AlgorithmContract`, and give it a `make` fixture.

class TestMine(AlgorithmContract):
    @pytest.fixture
    def make(self): return lambda setup: ...  # a new algorithm each time
"""

import copy
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from robot_rl.config.components import AlgorithmConfig, EncoderConfig, IQLConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.replay.percept import ImageSpec, PerceptSpec, ToolElements
from robot_rl.errors import CheckpointError, ConfigError, SpecError
from robot_rl.learn.algorithms.base import Algorithm, AlgorithmSetup
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint
from robot_rl.learn.networks.heads import ImageHead, StateHead
from robot_rl.learn.networks.networks import Policy

STATE, ACTION = 4, 3
FEATURES = ImageSpec("features", (4, 2, 5, 3, 3), "float16", maker="", size=96)
CONFIG = TrainConfig(
    sac=SACConfig(hidden_sizes=(16,), learning_rate=1e-2),
    offline=IQLConfig(steps=4),
    replay=ReplayConfig(demo_fraction=1.0),
)


def setup(seed=0, *, gripper=False, choices=False, images=False, config=CONFIG):
    generator = torch.Generator().manual_seed(seed)
    head = StateHead(STATE)
    if images:
        percepts = PerceptSpec(STATE, FEATURES, ToolElements((0, 1)))
        head = ImageHead(STATE, percepts, EncoderConfig(bottleneck=8, spatial_features=2), generator)
    size = 1 if choices else ACTION
    policy = Policy(
        head=head, action_size=size, choices=3 * (gripper or choices), hidden_sizes=(16,), generator=generator
    )
    return AlgorithmSetup(policy=policy, return_range=(0.0, 1.0), config=config)


def batch(seed=0, *, n=2, b=8, images=False, choices=False):
    g = torch.Generator().manual_seed(seed)
    action = torch.rand(n, b, ACTION, generator=g) * 1.8 - 0.9
    action[..., -1] = action[..., -1].round()
    made = Batch(
        observation=torch.randn(n, b, STATE, generator=g),
        action=action,
        reward=torch.rand(n, b, generator=g),
        discount=0.9 * torch.randint(2, (n, b), generator=g),
        next_observation=torch.randn(n, b, STATE, generator=g),
    )
    if choices:
        made = made._replace(action=action[..., -1:])
    if not images:
        return made
    seen = [torch.randn(n, b, *FEATURES.view_shape, generator=g).half() for _ in range(2)]
    return made._replace(images=seen[0], next_images=seen[1], to_goal=torch.randn(n, b, 2, generator=g))


def tensors(value):
    """All tensors of a nested state, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in items for tensor in tensors(item)]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(tensors(a), tensors(b), strict=True))


def policy_of(algorithm):
    return [parameter.detach().clone() for parameter in algorithm.policy.parameters()]


class AlgorithmContract:
    def test_it_trains_the_policy_that_it_was_given(self, make):
        given = setup()
        algorithm = make(given)
        assert isinstance(algorithm, Algorithm)
        assert algorithm.policy is given.policy
        before = policy_of(algorithm)
        algorithm.update(batch())
        assert not same(before, policy_of(algorithm))

    def test_windows_can_be_sampled(self, make):
        algorithm = make(setup())
        assert algorithm.n_step >= 1
        assert 0 < algorithm.discount <= 1

    def test_logs_are_detached_scalars_of_the_same_names(self, make):
        algorithm = make(setup())
        rows = [algorithm.update(batch(seed)) for seed in range(3)]
        assert rows[0]
        for row in rows:
            assert row.keys() == rows[0].keys()
            assert all(value.shape == () and not value.requires_grad for value in row.values())
            assert all(value.isfinite() for value in row.values())

    def test_a_batch_stays_as_it_is(self, make):
        data, copied = batch(), copy.deepcopy(batch())
        make(setup()).update(data)
        assert same(list(data), list(copied))

    def test_a_seed_decides_everything_and_no_other_randomness_is_used(self, make):
        before = torch.get_rng_state()
        a, b, c = (make(setup(seed)) for seed in (0, 0, 1))
        for seed in range(3):
            logs = [algorithm.update(batch(seed)) for algorithm in (a, b, c)]
            assert same(logs[0], logs[1])
        assert torch.equal(before, torch.get_rng_state())
        assert same(a.state_dict(), b.state_dict())
        assert not same(policy_of(a), policy_of(c))

    @pytest.mark.parametrize("pretrained", [False, True])
    def test_a_saved_state_continues_bit_for_bit(self, make, tmp_path, pretrained):
        a, b = make(setup(0)), make(setup(7))
        if pretrained:
            pretrain(a, batch())
        else:
            a.update(batch())
        save_checkpoint(tmp_path / "state.pt", a.state_dict(), kind="test")
        b.load_state_dict(load_checkpoint(tmp_path / "state.pt", kind="test"))
        observation = torch.randn(6, STATE)
        for seed in (1, 2):
            assert same(a.update(batch(seed)), b.update(batch(seed)))
            assert same(*(one.policy.act(observation, deterministic=False) for one in (a, b)))
        assert same(a.state_dict(), b.state_dict())

    def test_a_pretraining_continues_bit_for_bit(self, make):
        a, b = make(setup(0)), make(setup(7))
        pretrain(a, batch())
        b.load_state_dict(a.state_dict())
        assert same(a.pretrain(batch(1)), b.pretrain(batch(1)))
        a.end_pretraining()
        b.end_pretraining()
        assert same(policy_of(a), policy_of(b))

    def test_a_pretrained_policy_goes_on_online(self, make):
        algorithm = make(setup())
        before = policy_of(algorithm)
        pretrain(algorithm, batch())
        algorithm.end_pretraining()
        assert not same(before, policy_of(algorithm))
        assert all(value.isfinite() for value in algorithm.update(batch(1)).values())

    def test_a_state_is_a_copy(self, make):
        algorithm = make(setup())
        algorithm.update(batch())
        state = algorithm.state_dict()
        before = copy.deepcopy(state)
        algorithm.load_state_dict(state)
        algorithm.update(batch(1))
        assert same(before, state)

    def test_another_state_is_refused(self, make):
        with pytest.raises(CheckpointError):
            make(setup()).load_state_dict({})

    def test_a_batch_that_does_not_fit_is_refused(self, make):
        algorithm, data = make(setup()), batch()
        with pytest.raises(SpecError):
            algorithm.update(data._replace(action=data.action[..., :-1]))
        with pytest.raises(SpecError):
            algorithm.update(data._replace(next_observation=data.next_observation[..., :-1]))

    @pytest.mark.parametrize("kind", ["images", "gripper", "choices"])
    def test_images_grippers_and_choices_are_learned_or_refused_with_a_reason(self, make, kind):
        try:
            algorithm = make(setup(**{kind: True}))
        except ConfigError:
            return
        before = policy_of(algorithm)
        logs = algorithm.update(batch(images=kind == "images", choices=kind == "choices"))
        assert all(value.isfinite() for value in logs.values())
        assert not same(before, policy_of(algorithm))

    def test_options_that_it_does_not_know_are_refused(self, make):
        unknown = replace(CONFIG, algorithm=AlgorithmConfig(options=("no_such_option=1",)))
        with pytest.raises(ConfigError, match="no_such_option"):
            make(setup(config=unknown))

    def test_transformed_steps_are_used_and_change_nothing(self, make):
        plain, other = make(setup()), make(setup())
        replaced, called = [], []

        def transform(step, /):
            replaced.append(step)

            def counted(*arguments):
                called.append(step)
                return step(*arguments)

            return counted

        other.transform_steps(transform)
        assert same(plain.update(batch()), other.update(batch()))
        assert same(plain.state_dict(), other.state_dict())
        assert set(map(repr, called)) == set(map(repr, replaced))

    def test_what_may_be_recorded_as_a_graph_reads_no_tensor_back(self, make):
        algorithm = make(setup())
        if not algorithm.capturable:
            return
        with NoScalars():
            algorithm.update(batch())


class NoScalars(TorchDispatchMode):
    """Fails when a tensor is read back to Python: for that a GPU would have to be waited for."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func is not torch.ops.aten._local_scalar_dense.default, "a tensor was read back to Python"
        return func(*args, **(kwargs or {}))


def pretrain(algorithm, data):
    """Pretrain, or skip the test where the algorithm says that it cannot."""
    try:
        return algorithm.pretrain(data)
    except ConfigError as error:
        assert "offline.steps" in str(error)
        pytest.skip("it has no pretraining")
