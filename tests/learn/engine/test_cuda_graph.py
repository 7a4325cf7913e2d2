import numpy as np
import pytest
import torch
from tiny_heads import FEATURES, STATE, generator, images

from robot_rl.config.components import EncoderConfig, EngineConfig, SACConfig
from robot_rl.data.replay.percept import PerceptSpec, ToolElements
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.engine.cuda_graph import CapturedForward
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.networks.heads import ImageHead
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import FrozenFeatures

UPDATES = 8
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
"""On a CPU nothing is recorded, which the same tests show without a GPU."""


def learner(device):
    g = torch.Generator(device).manual_seed(0)
    settings = SACConfig(hidden_sizes=(16,), ensemble_size=4, target_subset=2)
    head = ImageHead(
        STATE, PerceptSpec(STATE, FEATURES, ToolElements((0, 1))), EncoderConfig(bottleneck=8, spatial_features=2), g
    )
    policy = Policy(head=head, action_size=3, choices=3, hidden_sizes=(16,), generator=g)
    return SAC(policy, return_range=(0.0, 1.0), config=settings)


def batch(seed, device):
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
    return Batch._make(None if column is None else column.to(device) for column in made)


def close(a, b):
    for name, value in a.items():
        torch.testing.assert_close(b[name], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_recorded_update_is_the_plain_one(precision, device):
    plain, recorded = learner(device), learner(device)
    engines = [
        Engine(sac, EngineConfig(precision=precision, capture=c)) for sac, c in ((plain, False), (recorded, True))
    ]
    for seed in range(UPDATES):
        close(*(engine.update(batch(seed, device)) for engine in engines))
    close(plain.policy.state_dict(), recorded.policy.state_dict())


@pytest.mark.parametrize("device", DEVICES)
def test_a_recording_does_not_outlive_a_loaded_state(device):
    one, other = learner(device), learner(device)
    engine, fresh = Engine(one, EngineConfig()), Engine(other, EngineConfig())
    for seed in range(UPDATES):
        engine.update(batch(seed, device))
    other.load_state_dict(one.state_dict())
    one.load_state_dict(one.state_dict())
    engine.restart()
    for seed in range(UPDATES):
        close(engine.update(batch(seed, device)), fresh.update(batch(seed, device)))


@needs_gpu
def test_a_recorded_network_gives_what_the_plain_one_gives_for_inputs_of_each_shape():
    network = torch.nn.Conv2d(3, 5, 3).cuda().requires_grad_(False)
    recorded = CapturedForward(network)
    results = []
    for seed, count in enumerate((2, 6, 2, 6, 2)):
        x = torch.randn(count, 3, 8, 8, generator=generator(seed)).cuda()
        results.append((recorded(x), network(x)))
    for result, expected in results:  # none is written over by a later one
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-4)


@needs_gpu
def test_features_on_a_gpu_are_those_of_the_cpu():
    frames = torch.randint(0, 256, (2, 64, 64, 3), dtype=torch.uint8, generator=generator(0)).numpy()
    config = EncoderConfig(cameras=("front", "wrist"), image_size=64, precision="float32")
    (here, seen), (there, seen_there) = (
        (encoder.encode(frames, view := encoder.view(frames)), view)
        for encoder in (FrozenFeatures(config), FrozenFeatures(config, "cuda"))
    )
    for ours, theirs in ((seen, seen_there), (here, there)):
        assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
        assert np.linalg.norm((theirs - ours).astype(float)) < 0.005 * np.linalg.norm(ours.astype(float))
