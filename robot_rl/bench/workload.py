"""Synthetic work of one learner call, for benchmarks of the engine. Only its sizes count."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robot_rl.bench.flops import head_flops, update_flops
from robot_rl.config.components import EncoderConfig, SACConfig
from robot_rl.data.replay.percept import ImageSpec, PerceptSpec, ToolElements
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import ImageHead, StateHead
from robot_rl.learn.networks.networks import Policy

TOOLS = ToolElements((0, 1, 2, 3, 4, 5))
ENCODER = EncoderConfig(cameras=("front", "wrist"))
"""Of work from pixels."""


@dataclass(frozen=True)
class Workload:
    """Sizes of the work.

    Attributes:
        state: Elements of the state.
        action: Continuous actions.
        batch: Transitions in a minibatch.
        updates: Critic updates in a call, each with a minibatch of its own.
        critics: Networks in the ensemble.
        images: What replay stores of the cameras' frames; None for work from state.
        encoder: Settings of the head for `images`.
    """

    state: int = 24
    action: int = 7
    batch: int = 256
    updates: int = 4
    critics: int = 2
    images: ImageSpec | None = None
    encoder: EncoderConfig = ENCODER

    @property
    def settings(self) -> SACConfig:
        """Of the algorithm: the defaults, with this many critics, two of which make a target."""
        return SACConfig(ensemble_size=self.critics, target_subset=2)

    @property
    def flops(self) -> int:
        """Operations in the matrix products of a call."""
        if self.images is None:
            return update_flops(self.settings, self.state, self.action, self.batch, self.updates)
        head = head_flops(self.encoder, self.images, self.state)
        latent = self.learner().policy.head.size
        return update_flops(self.settings, latent, self.action, self.batch, self.updates, head)

    def learner(self, device: str = "cpu") -> SAC:
        """Make an untrained learner."""
        generator = torch.Generator(device).manual_seed(0)
        head: StateHead | ImageHead = StateHead(self.state)
        if self.images is not None:
            percepts = PerceptSpec(self.state // 2, self.images, TOOLS)
            head = ImageHead(self.state, percepts, self.encoder, generator)
        layers = self.settings.hidden_sizes
        policy = Policy(head=head, action_size=self.action, hidden_sizes=layers, generator=generator)
        return SAC(policy, return_range=(0.0, 1.0), config=self.settings)

    def minibatches(self, device: str = "cpu") -> Batch:
        """Draw a random batch for one call."""
        shape, generator = (self.updates, self.batch), torch.Generator().manual_seed(0)

        def normal(*sizes: int) -> Tensor:
            return torch.randn(*shape, *sizes, generator=generator)

        seen: list[Tensor | None] = [None, None]
        if self.images is not None:
            seen = [normal(*self.images.view_shape).half() for _ in range(2)]
        batch = Batch(
            observation=normal(self.state),
            action=torch.rand(*shape, self.action, generator=generator) * 2 - 1,
            reward=torch.zeros(shape),
            discount=torch.full(shape, 0.97**3),
            next_observation=normal(self.state),
            images=seen[0],
            next_images=seen[1],
            to_goal=normal(len(TOOLS.pose)) if self.images is not None else None,
        )
        return Batch._make(None if column is None else column.to(device) for column in batch)


def cached_features(encoder: EncoderConfig) -> ImageSpec:
    """Return the format of the features of two cameras by the bundled encoder: 4 by 4 cells."""
    shape = encoder.crops, len(encoder.cameras), encoder.projection, 4, 4
    return ImageSpec("features", shape, "float16", maker="", size=encoder.image_size)
