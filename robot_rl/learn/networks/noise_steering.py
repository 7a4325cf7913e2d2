"""Diffusion steering: a policy that chooses the noise from which the flow of its base starts."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from robot_rl.config.components import TrainConfig
from robot_rl.config.schedule import value_at
from robot_rl.data.replay.percept import NO_TOOLS, PerceptSpec
from robot_rl.env.choice import GRIPPER_CHOICES
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.learn.networks.chunk_network import ChunkNetwork, make_chunk_network


class NoiseSteering(nn.Module):
    """Acts by the noise of a base, whose network stays as it is: diffusion steering (DSRL, Wagenmaker 2025).

    One vector of noise w is the start of all steps of a chunk, x_0 = (w, ..., w), as in the paper. Its critics are of
    actions, as DSRL-NA's; the slope along w, which it distils into another critic, is taken through the flow here.

    Args:
        network: Of the base; with flow matching.
        steps: First actions of a chunk that are played, h.
        bound: Largest magnitude of an element of w, at the start.
        gripper: Whether the last entry of an action is the choice of a gripper.
    """

    def __init__(self, network: ChunkNetwork, *, steps: int, bound: float, gripper: bool) -> None:
        super().__init__()
        self.network = network.requires_grad_(False)
        self.noise_size = network.action_size
        """Elements of w, n."""
        self.bound = bound
        self._steps, self._gripper = steps, gripper

    @torch.no_grad()
    def condition(self, state: Tensor, images: Tensor | None) -> Tensor:
        """Return what the base makes of states (B, state) and images (B, *view_shape), (B, condition)."""
        return self.network.condition(state, images)

    def actions(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Return the actions (B, h n) that follow from conditions and noise (B, n), in [-1, 1], step after step.

        What a gripper does is the nearest choice; its slope is that of the number that the choice is nearest to.
        """
        tiled = noise[:, None].expand(-1, self.network.horizon, -1)
        actions = self.network.chunks(condition, tiled)[:, : self._steps].clamp(-1.0, 1.0)
        if self._gripper:
            last = (GRIPPER_CHOICES - 1) / 2
            chosen = ((actions + 1) * last).round() / last - 1
            straight = actions + (chosen - actions).detach()
            actions = torch.cat([actions[..., :-1], straight[..., -1:]], -1)
        return actions.flatten(1)


def make_noise_steering(
    task: EnvironmentSpec, percepts: PerceptSpec, config: TrainConfig, device: torch.device
) -> NoiseSteering:
    """Make the steering of a run's base, for its network to be loaded into."""
    network = make_chunk_network(
        replace(percepts, tools=NO_TOOLS),
        config,
        torch.Generator(),
        horizon=config.base.horizon,
        history=config.base.history,
        action_size=task.action_size,
        flow=True,
    )
    bound, gripper = value_at(config.base.bound, 0), bool(task.grippers)
    return NoiseSteering(network, steps=config.algorithm.chunk, bound=bound, gripper=gripper).to(device)
