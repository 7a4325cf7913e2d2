"""Soft actor-critic as in RLPD (Haarnoja 2018; Ball 2023): many critic updates, then one of actor and temperature."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from robot_rl.config.components import SACConfig
from robot_rl.errors import CheckpointError, ConfigError, SpecError
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.adam import Adam, state_of_torch
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.critic_outputs import make_critic_outputs
from robot_rl.learn.networks.networks import Policy, StackedMLP, squashed_sample

STATE_FORMAT, WITH_TORCHS_ADAM = 3, 2
"""The format that is written, and the one before, which is read as well."""


class SAC:
    """The learner's algorithm: networks, optimizers, and one `update`.

    Args:
        policy: What is learned, on its device; all randomness comes from its generator. The discrete gripper, where
            there is one, is learned by a double DQN (HIL-SERL, Luo 2024).
        return_range: Smallest and largest possible discounted return.
        config: Hyper-parameters.

    Raises:
        ConfigError: if the settings contradict each other.
    """

    def __init__(self, policy: Policy, *, return_range: tuple[float, float], config: SACConfig) -> None:
        if config.target_subset > config.ensemble_size:
            raise ConfigError(f"target_subset {config.target_subset} exceeds ensemble_size {config.ensemble_size}")
        if not return_range[0] < return_range[1]:
            raise ConfigError(f"return_range {return_range} is empty")
        self.config = config
        self.return_range = return_range
        self.policy, self.generator = policy, policy.generator
        device = self.generator.device
        self._clamp = return_range if config.clamp_targets else None
        self._target_entropy = config.target_entropy_per_action * self.policy.continuous_size
        inputs = policy.head.size + policy.continuous_size
        self.critic_outputs = make_critic_outputs(config, return_range, device)
        self.critic = StackedMLP(
            config.ensemble_size, inputs, config.hidden_sizes, self.critic_outputs.count, self.generator
        )
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_temperature = torch.tensor(math.log(config.initial_temperature), device=device, requires_grad=True)
        self.critic_updates = 0

        self._followed: list[Tensor] = list(self.critic.parameters())
        self._following: list[Tensor] = list(self.critic_target.parameters())
        self._modules = {"policy": self.policy, "critic": self.critic, "critic_target": self.critic_target}
        valued: list[Tensor] = [
            *self.critic.parameters(),
            *policy.head.parameters(),
        ]  # the critics' loss trains the head
        if policy.gripper is not None:
            self.gripper_target = copy.deepcopy(policy.gripper).requires_grad_(False)
            self._modules["gripper_target"] = self.gripper_target
            valued += policy.gripper.parameters()
            self._followed += policy.gripper.parameters()
            self._following += self.gripper_target.parameters()
        self.look_ahead, self.step_critics, self.step_actor = self._look_ahead, self._step_critics, self._step_actor
        """These three depend on tensors alone, and change nothing but parameters and their optimizers' state; an
        engine may put compiled ones in their place."""
        self._optimizers = {
            "actor": Adam(policy.actor.parameters(), config.learning_rate),
            "critic": Adam(valued, config.learning_rate),
            "temperature": Adam([self.log_temperature], config.learning_rate),
        }

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Updates the critics on each of the N minibatches, then actor and temperature once, on the last one.

        Returns:
            Detached scalars on the learner's device: means over the critic updates of `critic_loss`, `q_mean`,
            `target_mean` (to be held against `return_range`) and, with a gripper, `gripper_loss`; and `actor_loss`,
            `entropy`, `temperature`.

        Raises:
            SpecError: if the batch does not fit the networks.
        """
        self._check(batch)
        logs = self.update_critics(batch)
        return logs | self.update_actor(batch.observation[-1], batch.images[-1] if batch.images is not None else None)

    def update_critics(self, batch: Batch) -> dict[str, Tensor]:
        """One update of critics, gripper critics and head, and of the targets, for each minibatch."""
        logs: dict[str, list[Tensor]] = {}
        # The actor rests meanwhile, and its targets may see with the head as it was before.
        next_state, shape = batch.next_observation.flatten(0, 1), batch.reward.shape
        next_images = batch.next_images.flatten(0, 1) if batch.next_images is not None else None
        seen, chosen = self.look_ahead(next_state, next_images, self.policy.draw_noise(next_state))
        next_latent, next_action = seen.view(*shape, -1), chosen.view(*shape, -1)

        for n in range(len(batch.reward)):
            figures = self.step_critics(batch.minibatch(n), next_latent[n], next_action[n], self._draw_members())
            self.critic_updates += 1
            for name, value in figures.items():
                logs.setdefault(name, []).append(value)
        return {name: losses.mean_of(column) for name, column in logs.items()}

    def update_actor(self, state: Tensor, images: Tensor | None = None) -> dict[str, Tensor]:
        """One update of actor and temperature on states (B, state) and images (B, *view_shape)."""
        return self.step_actor(state, images, self.policy.draw_noise(state))

    @torch.no_grad()
    def _look_ahead(self, state: Tensor, images: Tensor | None, noise: Tensor) -> tuple[Tensor, Tensor]:
        """What the head makes of next states, and a' ~ pi(s')."""
        latent = self.policy.head(state, images)
        mean, log_std = self.policy(latent)
        return latent, squashed_sample(mean, log_std, noise)[0]

    def _step_critics(
        self, batch: Batch, next_latent: Tensor, next_action: Tensor, members: Tensor | None
    ) -> dict[str, Tensor]:
        """One step of critics, gripper critics and head on one minibatch, and of the targets after them."""
        loss, figures = self._critic_objective(batch, next_latent, next_action, members)
        self._optimizers["critic"].minimize(loss)
        self.track()
        return figures

    def _step_actor(self, state: Tensor, images: Tensor | None, noise: Tensor) -> dict[str, Tensor]:
        """One step of actor and temperature."""
        with torch.no_grad():
            latent = self.policy.head(state, images)
        temperature = self.log_temperature.detach().exp()
        loss, entropy = self._actor_objective(latent, noise, temperature)
        self._optimizers["actor"].minimize(loss)

        # J_alpha = alpha (H - H_target)
        target = self._target_entropy
        self._optimizers["temperature"].minimize(losses.temperature_loss(self.log_temperature, entropy, target))
        return {"actor_loss": loss.detach(), "entropy": entropy, "temperature": temperature}

    @torch.no_grad()
    def track(self) -> None:
        """Moves the targets towards what they follow."""
        # theta' <- (1 - tau) theta' + tau theta
        torch._foreach_lerp_(self._following, self._followed, self.config.target_rate)

    def _critic_objective(
        self, batch: Batch, next_latent: Tensor, next_action: Tensor, members: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of critics, gripper critics and head on one minibatch, without the leading N; and figures of it."""
        with torch.no_grad():  # y = R + gamma^m min_{i in M} Q'_i(s', a'), M a random subset of the ensemble
            next_outputs = self.critic_target(self.policy.head.with_action(next_latent, next_action), members)
            next_values = self.critic_outputs.value(next_outputs)
            target = losses.critic_target(batch.reward, batch.discount, next_values, self._clamp)

        # L = sum_i mean_b (Q_i(s, a) - y)^2, or the cross-entropy of a histogram of y
        latent = self.policy.head(batch.observation, batch.images)
        action = batch.action[:, : self.policy.continuous_size]
        outputs = self.critic(self.policy.head.with_action(latent, action))
        loss, q_mean = self.critic_outputs.loss(outputs, target), self.critic_outputs.value(outputs.detach()).mean()
        figures = {"critic_loss": loss.detach(), "q_mean": q_mean, "target_mean": target.mean()}
        if batch.to_goal is not None:  # L += w mean_b |g(s) - (x_T - x_t)|^2 over episodes that succeeded
            goal_loss = losses.goal_loss(self.policy.head.to_goal(latent).float(), batch.to_goal)
            loss = loss + self.config.goal_weight * goal_loss
            figures["goal_loss"] = goal_loss.detach()
        gripper = self.policy.gripper
        if gripper is None:
            return loss, figures

        with torch.no_grad():  # y = R + gamma^m min_i Q'_i(s', argmax_g mean_j Q_j(s', g))
            next_values, next_targets = gripper(next_latent).float(), self.gripper_target(next_latent).float()
            target = losses.gripper_target(batch.reward, batch.discount, next_values, next_targets, self._clamp)

        # L = sum_i mean_b (Q_i(s, g) - y)^2
        values = losses.values_of(gripper(latent).float(), losses.gripper_index(batch.action))
        gripper_loss = losses.critic_loss(values, target)
        return loss + gripper_loss, figures | {"gripper_loss": gripper_loss.detach()}

    def _actor_objective(self, latent: Tensor, noise: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """Loss of the actor, and the policy's entropy."""
        # J = mean_b (alpha log pi(a|s) - mean_i Q_i(s, a)), a = tanh(mu(s) + sigma(s) eps)
        mean, log_std = self.policy(latent)
        action, log_prob = squashed_sample(mean, log_std, noise)
        values = self.critic_outputs.value(self.critic(self.policy.head.with_action(latent, action)))
        return losses.actor_loss(values, log_prob, temperature), -log_prob.detach().mean()

    def policy_state(self) -> dict[str, Tensor]:
        """Copies, on the CPU, of all that an actor's `Policy` needs."""
        return self.policy.policy_state()

    def load_policy_state(self, state: dict[str, Tensor]) -> None:
        """Takes over a policy's parameters; critics and optimizers stay as they are."""
        self.policy.load_policy_state(state)

    def state_dict(self) -> dict[str, Any]:
        """A copy of everything that the next update depends on; fit for `torch.load(weights_only=True)`."""
        state = {
            "format": STATE_FORMAT,
            "modules": {name: module.state_dict() for name, module in self._modules.items()},
            "log_temperature": self.log_temperature.detach(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()},
            "generator": self.generator.get_state(),
            "critic_updates": self.critic_updates,
        }
        return copy.deepcopy(state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave.

        Raises:
            CheckpointError: if the state has another format, other sizes, or was written on another kind of device.
        """
        if state.get("format") not in (WITH_TORCHS_ADAM, STATE_FORMAT):
            readable = f"{WITH_TORCHS_ADAM} and {STATE_FORMAT}"
            raise CheckpointError(f"learner state has format {state.get('format')}, this program reads {readable}")
        try:
            for name, module in self._modules.items():
                module.load_state_dict(state["modules"][name])
            for name, optimizer in self._optimizers.items():
                given = state["optimizers"][name]
                if state["format"] != WITH_TORCHS_ADAM:
                    optimizer.load_state_dict(given)
                elif given["state"]:  # otherwise it has made no step yet
                    optimizer.load_state_dict(state_of_torch(given))
            self.generator.set_state(state["generator"].cpu())
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"this state belongs to another learner: {error}") from error
        with torch.no_grad():
            self.log_temperature.copy_(state["log_temperature"])
        self.critic_updates = state["critic_updates"]

    def _draw_members(self) -> Tensor | None:
        """Indices of `target_subset` critics, drawn without replacement; None stands for all of them."""
        if self.config.target_subset == self.config.ensemble_size:
            return None
        keys = torch.rand(self.config.ensemble_size, generator=self.generator, device=self.generator.device)
        return keys.argsort()[: self.config.target_subset]

    def _check(self, batch: Batch) -> None:
        shape = tuple(batch.reward.shape)
        if len(shape) != 2 or 0 in shape:
            raise SpecError(f"batch.reward: shape {shape}, expected (N, B), neither of them 0")
        for name, end in (("action", (self.policy.action_size,)), ("discount", ())):
            value = getattr(batch, name)
            if tuple(value.shape) != (*shape, *end):
                raise SpecError(f"batch.{name}: shape {tuple(value.shape)}, expected (N, B) = {shape} and {end}")
        self.policy.head.check(shape, batch.observation, batch.images)
        self.policy.head.check(shape, batch.next_observation, batch.next_images)
