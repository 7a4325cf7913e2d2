import pytest
import torch
from tiny_heads import FEATURES, STATE, generator, images

from robot_rl.config.components import EncoderConfig, EngineConfig, SACConfig
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.networks.heads import ImageHead
from robot_rl.learn.networks.networks import Policy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
UPDATES = 8


def learner():
    g = torch.Generator("cuda").manual_seed(0)
    settings = SACConfig(hidden_sizes=(16,), ensemble_size=4, target_subset=2)
    head = ImageHead(STATE, PerceptSpec(STATE, FEATURES, (0, 2)), EncoderConfig(bottleneck=8, spatial_features=2), g)
    policy = Policy(head=head, action_size=3, choices=3, hidden_sizes=(16,), generator=g)
    return SAC(policy, return_range=(0.0, 1.0), config=settings)


def batch(seed):
    g, shape = generator(seed), (2, 8)
    action = torch.rand(*shape, 3, generator=g) * 2 - 1
    action[..., -1] = action[..., -1].round()
    seen = [images(16, seed=10 * seed + i).view(*shape, *FEATURES.view_shape) for i in range(2)]
    made = Batch(
        torch.randn(*shape, STATE, generator=g),
        action,
        torch.rand(shape, generator=g),
        torch.full(shape, 0.9),
        torch.randn(*shape, STATE, generator=g),
        *seen,
        torch.randn(*shape, 2, generator=g),
    )
    return Batch._make(column.cuda() for column in made)


def close(a, b):
    for name, value in a.items():
        torch.testing.assert_close(b[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_recorded_update_is_the_plain_one(precision):
    plain, recorded = learner(), learner()
    engines = [
        Engine(sac, EngineConfig(precision=precision, capture=c)) for sac, c in ((plain, False), (recorded, True))
    ]
    for seed in range(UPDATES):
        close(*(engine.update(batch(seed)) for engine in engines))
    close(plain.policy.state_dict(), recorded.policy.state_dict())


def test_a_recording_does_not_outlive_a_loaded_state():
    one, other = learner(), learner()
    engine, fresh = Engine(one, EngineConfig()), Engine(other, EngineConfig())
    for seed in range(UPDATES):
        engine.update(batch(seed))
    other.load_state_dict(one.state_dict())
    one.load_state_dict(one.state_dict())
    engine.restart()
    for seed in range(UPDATES):
        close(engine.update(batch(seed)), fresh.update(batch(seed)))
