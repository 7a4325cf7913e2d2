"""The networks that SAC and IQL both train: a policy, an ensemble of critics, and the targets that follow them."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from robot_rl.config.components import SACConfig
from robot_rl.errors import ConfigError
from robot_rl.learn.algorithms.critic_outputs import make_critic_outputs
from robot_rl.learn.algorithms.scheduled_values import ScheduledValues
from robot_rl.learn.networks.networks import Policy, StackedMLP


class ActorCritic:
    """A policy with critics, on the device of the policy's generator.

    Args:
        policy: The policy; all randomness comes from its generator. Its gripper critics, where there are any, get
            targets too.
        return_range: Smallest and largest possible discounted return; None: not known.
        config: Sizes, kind of critics, rate of the targets.

    Raises:
        ConfigError: if the range of returns is empty, or unknown and needed.
    """

    def __init__(self, policy: Policy, return_range: tuple[float, float] | None, config: SACConfig) -> None:
        if return_range is not None and not return_range[0] < return_range[1]:
            raise ConfigError(f"return_range {return_range} is empty")
        self.config, self.return_range = config, return_range
        self.policy, self.generator = policy, policy.generator
        self.scheduled = ScheduledValues(self.generator.device)
        self.critic_outputs = make_critic_outputs(config, return_range, self.generator.device)
        inputs = policy.head.size + policy.continuous_size
        self.critic = StackedMLP(
            config.ensemble_size, inputs, config.hidden_sizes, self.critic_outputs.count, self.generator
        )
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.modules: dict[str, nn.Module] = {
            "policy": self.policy,
            "critic": self.critic,
            "critic_target": self.critic_target,
        }
        self._followed: list[Tensor] = list(self.critic.parameters())
        self._following: list[Tensor] = list(self.critic_target.parameters())
        if policy.gripper is not None:
            self.gripper_target = copy.deepcopy(policy.gripper).requires_grad_(False)
            self.modules["gripper_target"] = self.gripper_target
            self._followed += policy.gripper.parameters()
            self._following += self.gripper_target.parameters()

    def advance(self, env_steps: int) -> dict[str, float]:
        """Set what follows a schedule; see `Algorithm.advance`."""
        return self.scheduled.advance(env_steps)

    @torch.no_grad()
    def value(self, state: Tensor, images: Tensor | None) -> Tensor:
        """Return mean_i Q_i(s, a) of states (B, state) and images (B, *view_shape), a the policy's mean; shape (B,)."""
        latent = self.policy.head(state, images)
        action = self.policy.executed(self.policy(latent)[0].tanh(), self.policy.proposal(state, images))
        outputs = self.critic(self.policy.head.with_action(latent, action))
        return self.critic_outputs.value(outputs).float().mean(0)

    @torch.no_grad()
    def track(self) -> None:
        """Move the targets towards the networks that they follow."""
        # theta' <- (1 - tau) theta' + tau theta
        torch._foreach_lerp_(self._following, self._followed, self.config.target_rate)
