"""Heads and a classifier of random numbers, small and quickly made."""

import torch

from robot_rl.reward.classifier.classifier import RewardClassifier
from robot_rl.reward.classifier.physical_gate import PhysicalGate
from robot_rl.reward.heads.progress_head import ProgressHead, ProgressNet
from robot_rl.reward.heads.success_head import SuccessHead

FEATURES, MEMBERS = 6, 3


def success_head(seed=0, camera="front"):
    g = torch.Generator().manual_seed(seed)
    return SuccessHead(
        "random", 64, camera, "push", ("e1", "e2"), torch.randn(FEATURES, generator=g),
        torch.rand(FEATURES, generator=g) + 0.1, torch.randn(MEMBERS, FEATURES, generator=g),
        torch.randn(MEMBERS, generator=g),
    )  # fmt: skip


def progress_head(seed=0):
    g = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = ProgressNet(4).eval()
    mean, basis = torch.randn(FEATURES, generator=g), torch.randn(FEATURES, 4, generator=g)
    return ProgressHead("random", 64, "front", "push", ("e3",), mean, basis, net)


def classifier():
    heads = {name: success_head(seed, name) for seed, name in enumerate(("front", "wrist"))}
    gates = (PhysicalGate("state/tcp_pose", 2, True, -0.05),)
    return RewardClassifier("push", heads, (0.7, 0.0), -1.5, 0.9, 3, gates, {"episodes": 12, "note": "äö"})
