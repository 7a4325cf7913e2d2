"""Heads, a learner and batches that are small enough to compute by hand."""

import torch

from robot_rl.config.components import EncoderConfig, SACConfig
from robot_rl.data.replay.percept import ImageSpec, PerceptSpec, ToolElements
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import ImageHead, StateHead
from robot_rl.learn.networks.networks import Policy

STATE, CAMERAS = 6, 2
FEATURES = ImageSpec("features", (4, CAMERAS, 5, 3, 3), "float16", maker="", size=96)
FRAMES = ImageSpec("frames", (CAMERAS, 32, 32, 3), "uint8", maker="", size=32, shift=2)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def head(spec=FEATURES, seed=0, pose=(), **settings):
    config = EncoderConfig(**{"bottleneck": 8, "spatial_features": 2, "image_size": 32, "name": "conv", **settings})
    return ImageHead(STATE, PerceptSpec(STATE, spec, ToolElements(pose)), config, generator(seed))


def images(count, spec=FEATURES, seed=0):
    if spec.kind == "frames":
        return torch.randint(256, (count, *spec.view_shape), generator=generator(seed), dtype=torch.uint8)
    return torch.randn(count, *spec.view_shape, generator=generator(seed)).half()


def sac(spec=FEATURES, gripper=False, pose=()):
    settings = SACConfig(hidden_sizes=(16,), learning_rate=1e-2)
    eyes = head(spec, pose=pose) if spec else StateHead(STATE)
    policy = Policy(head=eyes, action_size=3, choices=3 if gripper else 0, hidden_sizes=(16,), generator=generator())
    return SAC(policy, return_range=(0.0, 1.0), config=settings)


def batch(spec, n=2, b=8):
    g = generator(5)
    action = torch.rand(n, b, 3, generator=g) * 2 - 1
    action[..., -1] = action[..., -1].round()
    seen = [images(n * b, spec, seed).view(n, b, *spec.view_shape) for seed in (1, 2)]
    states = [torch.randn(n, b, STATE, generator=g) for _ in range(2)]
    return Batch(states[0], action, torch.rand(n, b, generator=g), torch.full((n, b), 0.9), states[1], *seen)
