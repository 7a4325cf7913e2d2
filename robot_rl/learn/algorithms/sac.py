"""Soft actor-critic as in RLPD (Haarnoja 2018; Ball 2023): many critic updates, then one of actor and temperature."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from robot_rl.config.components import IQLConfig, SACConfig
from robot_rl.config.schedule import Rate, value_at
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.actor_critic import ActorCritic
from robot_rl.learn.algorithms.adam import Adam, state_of_torch
from robot_rl.learn.algorithms.base import Algorithm, AlgorithmSetup, StepTransform
from robot_rl.learn.algorithms.batch import Batch, check_batch
from robot_rl.learn.algorithms.double_dqn import DoubleDQN, choice_values
from robot_rl.learn.algorithms.dynamics_gap import DynamicsGap
from robot_rl.learn.algorithms.horizon import USUAL_STEPS, horizon_discount
from robot_rl.learn.algorithms.imitation import make_imitation
from robot_rl.learn.algorithms.iql import IQLTrainer
from robot_rl.learn.networks.networks import Policy, squashed_sample
from robot_rl.learn.networks.parameters import load_modules

logger = logging.getLogger(__name__)
STATE_FORMAT, WITHOUT_PRETRAINING, WITH_TORCHS_ADAM = 4, 3, 2
"""The format that is written, and the two before, which are read as well."""


class SAC(ActorCritic, Algorithm):
    """Soft actor-critic. Its pretraining is implicit Q-learning on the same networks.

    Args:
        policy: What is learned, on its device; all randomness comes from its generator. A discrete choice beside the
            continuous actions, e.g. of a gripper, is learned by a double DQN (HIL-SERL, Luo 2024).
        return_range: Smallest and largest possible discounted return; None: not known.
        config: Hyper-parameters; without a discount, that of episodes of 100 steps.
        pretraining: Those of `pretrain`.
        bound: Of the corrections of a policy with a base: a number or a schedule.
        penalty: Weight of their mean square in the policy's loss, as a share of the range of returns, or, where that is
            not known, of the mean size of what critics expect: a number or a schedule.
        gap: Weighs the steps of a simulation; None: all steps count alike.

    Raises:
        ConfigError: if the settings contradict each other, or there is no continuous action.
    """

    capturable = divisible = True

    def __init__(
        self,
        policy: Policy,
        *,
        return_range: tuple[float, float] | None,
        config: SACConfig,
        pretraining: IQLConfig | None = None,
        bound: Rate = 1.0,
        penalty: Rate = 0.0,
        gap: DynamicsGap | None = None,
    ) -> None:
        if not policy.continuous_size:
            raise ConfigError("SAC learns continuous actions, and here there are choices alone; choose a double DQN")
        if config.target_subset > config.ensemble_size:
            raise ConfigError(f"target_subset {config.target_subset} exceeds ensemble_size {config.ensemble_size}")
        super().__init__(policy, return_range, config)
        self.n_step = policy.chunk.length if policy.chunk.length > 1 else config.n_step
        self.discount = config.discount or horizon_discount(USUAL_STEPS)
        self._clamp = return_range if config.clamp_targets else None
        per_action, actions = config.target_entropy_per_action, policy.output_size
        self.target_entropy = self.scheduled.follow("target_entropy", per_action, actions)
        """Entropy of the policy that the temperature is tuned for."""
        device = self.generator.device
        self.log_temperature = torch.tensor(math.log(config.initial_temperature), device=device, requires_grad=True)
        valued: list[Tensor] = [*self.critic.parameters(), *policy.head.parameters()]  # their loss trains the head
        if policy.gripper is not None:
            valued += policy.gripper.parameters()
        rate = self.scheduled.follow("learning_rate", config.learning_rate)
        self._bound, self._gap = bound, gap
        self._penalty: float | Tensor | None = None
        if policy.corrects:
            span = 1.0 if return_range is None else return_range[1] - return_range[0]
            self._penalty = self.scheduled.follow("penalty", penalty, span)
        self._imitation = make_imitation(config, return_range, policy, self.scheduled)
        self._multiplier = None if self._imitation is None else self._imitation.multiplier
        self._temperature: float | Tensor | None = None  # where it is set and not tuned
        if config.temperature is not None:
            self._temperature = self.scheduled.follow("temperature", config.temperature)
        self._optimizers = {
            "actor": Adam(policy.actor.parameters(), rate, policy.ranks),
            "critic": Adam(valued, rate, policy.ranks),
            "temperature": Adam([self.log_temperature], rate, policy.ranks),
        }
        self._run_look_ahead, self._run_critic_step = self._look_ahead, self._critic_step
        self._run_actor_step = self._actor_step
        self._pretraining_config = pretraining or IQLConfig()
        self._pretraining: IQLTrainer | None = None

    def advance(self, env_steps: int) -> dict[str, float]:
        """Set what follows a schedule; see `Algorithm.advance`."""
        values = super().advance(env_steps)
        if self.policy.corrects:
            values["bound"] = value_at(self._bound, env_steps)
            self.policy.bound.fill_(values["bound"])
        return values

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Update the critics on each of the N minibatches, then actor and temperature once, on the last one.

        Returns:
            Detached scalars on the learner's device: means over the critic updates of `critic_loss`, of the figures of
            `losses.critic_figures`, of `critic_gradient`, the norm, and, with a gripper, of `gripper_loss`; and
            `actor_loss`, `actor_gradient`, `entropy`, `temperature`.

        Raises:
            SpecError: if the batch does not fit the networks.
        """
        check_batch(batch, self.policy)
        self._pretraining = None  # its state value is of no use once learning goes on online
        logs = self.update_critics(batch)
        last = batch.minibatch(-1)
        return logs | self.update_actor(last.observation, last.images, last if self._imitation is not None else None)

    def pretrain(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update on each minibatch; see `IQLTrainer.update`.

        Raises:
            ConfigError: if IQL would learn a policy with a gripper.
        """
        if self._pretraining is None:
            self._pretraining = self._make_pretraining()
        return self._pretraining.update(batch)

    def end_pretraining(self) -> None:
        """Conclude it; IQL sets the policy to the mean of what it was lately."""
        if self._pretraining is not None:
            self._pretraining.conclude()

    def _make_pretraining(self) -> IQLTrainer:
        return IQLTrainer(self, self._pretraining_config)

    def transform_steps(self, transform: StepTransform) -> None:
        """Replace the three step functions: next actions, critics with their targets, actor with temperature."""
        self._run_look_ahead = transform(self._run_look_ahead)
        self._run_critic_step = transform(self._run_critic_step)
        self._run_actor_step = transform(self._run_actor_step)

    def update_critics(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update of critics, gripper critics and head, and of the targets, for each minibatch."""
        logs: dict[str, list[Tensor]] = {}
        # The actor rests meanwhile, and its targets may see with the head as it was before.
        next_state, shape = batch.next_observation.flatten(0, 1), batch.reward.shape
        next_images = batch.next_images.flatten(0, 1) if batch.next_images is not None else None
        noise = self.policy.draw_noise(next_state, len(batch.reward))
        seen, chosen = self._run_look_ahead(next_state, next_images, noise)
        next_latent, next_action = seen.view(*shape, -1), chosen.view(*shape, -1)

        for n in range(len(batch.reward)):
            figures = self._run_critic_step(batch.minibatch(n), next_latent[n], next_action[n], self.draw_members())
            for name, value in figures.items():
                logs.setdefault(name, []).append(value)
        return {name: losses.mean_of(column) for name, column in logs.items()}

    def update_actor(
        self, state: Tensor, images: Tensor | None = None, shown: Batch | None = None
    ) -> dict[str, Tensor]:
        """Make one update of actor and temperature on states (B, state) and images (B, *view_shape).

        `shown` is their minibatch, whose demonstrated actions are imitated; None: none are.
        """
        return self._run_actor_step(state, images, self.policy.draw_noise(state), shown)

    @torch.no_grad()
    def _look_ahead(self, state: Tensor, images: Tensor | None, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the head makes of next states, and a' ~ pi(s')."""
        latent = self.policy.head(state, images)
        mean, log_std = self.policy(latent)
        output, _ = squashed_sample(mean, log_std, noise)
        return latent, self.policy.executed(output, self.policy.proposal(state, images))

    def _critic_step(
        self, batch: Batch, next_latent: Tensor, next_action: Tensor, members: Tensor | None
    ) -> dict[str, Tensor]:
        """Make one step of critics, gripper critics and head on one minibatch, and of the targets after them."""
        loss, figures = self._critic_objective(batch, next_latent, next_action, members)
        gradient = self._optimizers["critic"].minimize(loss)
        self.track()
        return figures | {"critic_gradient": gradient}

    def _actor_step(
        self, state: Tensor, images: Tensor | None, noise: Tensor, shown: Batch | None = None
    ) -> dict[str, Tensor]:
        """Make one step of actor and temperature."""
        with torch.no_grad():
            latent = self.policy.head(state, images)
        if self._temperature is not None:
            with torch.no_grad():
                self.log_temperature.copy_(torch.as_tensor(self._temperature).log())
        temperature = self.log_temperature.detach().exp()
        loss, entropy = self._actor_objective(latent, self.policy.proposal(state, images), noise, temperature, shown)
        gradient = self._optimizers["actor"].minimize(loss)

        if self._temperature is None:  # J_alpha = alpha (H - H_target)
            goal = self.target_entropy
            self._optimizers["temperature"].minimize(losses.temperature_loss(self.log_temperature, entropy, goal))
        return {"actor_loss": loss.detach(), "actor_gradient": gradient, "entropy": entropy, "temperature": temperature}

    def _critic_objective(
        self, batch: Batch, next_latent: Tensor, next_action: Tensor, members: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of critics, gripper critics and head on one minibatch, and figures of it for the logs."""
        with torch.no_grad():  # y = R + gamma^m min_{i in M} Q'_i(s', a'), M a random subset of the ensemble
            next_outputs = self.critic_target(self.policy.head.with_action(next_latent, next_action), members)
            next_values = self.critic_outputs.value(next_outputs)
            free = losses.critic_target(batch.reward, batch.discount, next_values, None)
            target = free if self._clamp is None else free.clamp(*self._clamp)

        # L = sum_i mean_b (Q_i(s, a) - y)^2, or the cross-entropy of a histogram of y
        latent = self.policy.head(batch.observation, batch.images)
        action = batch.action[:, : self.policy.continuous_size]
        outputs = self.critic(self.policy.head.with_action(latent, action))
        # with simulated steps each row has its weight, and L += what holds their values down
        weight, held, told = self._simulated(batch, outputs)
        loss, values = self.critic_outputs.loss(outputs, target, weight), self.critic_outputs.value(outputs.detach())
        figures = {"critic_loss": loss.detach(), **losses.critic_figures(values, target, free, self._clamp), **told}
        loss = loss if held is None else loss + held
        if batch.to_goal is not None:  # L += w mean_b |g(s) - (x_T - x_t)|^2 over episodes that succeeded
            goal_loss = losses.goal_loss(self.policy.head.to_goal(latent).float(), batch.to_goal, self.policy.ranks)
            loss = loss + self.config.goal_weight * goal_loss
            figures["goal_loss"] = goal_loss.detach()
        gripper = self.policy.gripper
        if gripper is None:
            return loss, figures

        # L += sum_i mean_b (Q_i(s, g) - y)^2, and what keeps choices of a base or of demonstrations
        choice = choice_values(
            self.policy, self.gripper_target, (latent, next_latent), batch, self._clamp, self._imitation
        )
        weight = weight if choice.held is None else choice.held
        gripper_loss = losses.critic_loss(choice.values, choice.target, weight)
        return loss + gripper_loss + choice.kept_loss, figures | {"gripper_loss": gripper_loss.detach()}

    def _simulated(self, batch: Batch, outputs: Tensor) -> tuple[Tensor | None, Tensor | None, Mapping[str, Tensor]]:
        """Return the weights of the rows, what holds values of simulated ones down, and figures of the gap."""
        if self._gap is None or batch.simulated is None:
            return None, None, {}
        ratio, figures = self._gap.learn(batch)
        held = self._gap.penalty(self.critic_outputs.value(outputs), ratio, batch.simulated)
        return self._gap.weights(ratio, batch.simulated), held, figures

    def _actor_objective(
        self, latent: Tensor, proposal: Tensor | None, noise: Tensor, temperature: Tensor, shown: Batch | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the actor and the entropy of the policy: of its correction, where there is a base."""

        def expected(action: Tensor) -> Tensor:
            return self.critic_outputs.value(self.critic(self.policy.head.with_action(latent, action)))

        # J = mean_b (alpha log pi(a|s) - mean_i Q_i(s, a)), a = tanh(mu(s) + sigma(s) eps), with a base + w mean a^2
        mean, log_std = self.policy(latent)
        output, log_prob = squashed_sample(mean, log_std, noise)
        action = self.policy.executed(output, proposal)
        values = expected(action)
        loss = losses.actor_loss(values, log_prob, temperature)
        if self._penalty is not None:
            # where the range of returns is not known, what is expected tells their size (Fujimoto and Gu 2021, eq. 5)
            size = losses.mean_size(values, self.policy.ranks) if self.return_range is None else 1.0
            loss = loss + losses.correction_penalty(output, self._penalty * size)
        if self._imitation is not None and shown is not None:  # J += w mean_b |a - a_E|^2 over what was demonstrated
            loss = loss + self._imitation.of_actions(action, values, shown, latent, expected)
        return loss, -log_prob.detach().mean()

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on; fit for `torch.load(weights_only=True)`."""
        state = {
            "format": STATE_FORMAT,
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "log_temperature": self.log_temperature.detach(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()},
            "generator": self.generator.get_state(),
            "pretraining": self._pretraining.state_dict() if self._pretraining is not None else None,
            **({} if self._gap is None else {"gap": self._gap.state_dict()}),
            **({} if self._multiplier is None else {"multiplier": self._multiplier.state_dict()}),
        }
        return copy.deepcopy(state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            CheckpointError: if the state has another format, other sizes, or was written on another kind of device.
        """
        if state.get("format") not in (WITH_TORCHS_ADAM, WITHOUT_PRETRAINING, STATE_FORMAT):
            readable = f"{WITH_TORCHS_ADAM}, {WITHOUT_PRETRAINING} and {STATE_FORMAT}"
            raise CheckpointError(f"learner state has format {state.get('format')}, this program reads {readable}")
        self._pretraining = None
        try:
            if (pretraining := state.get("pretraining")) is not None:
                self._pretraining = self._make_pretraining()
                self._pretraining.load_state_dict(pretraining)
            load_modules(self.modules, state["modules"])
            for name, optimizer in self._optimizers.items():
                given = state["optimizers"][name]
                if state["format"] != WITH_TORCHS_ADAM:
                    optimizer.load_state_dict(given)
                elif given["state"]:  # otherwise it has made no step yet
                    optimizer.load_state_dict(state_of_torch(given))
            if self._gap is not None:
                self._gap.load_state_dict(state["gap"])
            if self._multiplier is not None and "multiplier" in state:  # none in a fork that imitated otherwise before
                self._multiplier.load_state_dict(state["multiplier"])
            self.generator.set_state(state["generator"].cpu())
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"this state belongs to another learner: {error}") from error
        with torch.no_grad():
            self.log_temperature.copy_(state["log_temperature"])

    def draw_members(self) -> Tensor | None:
        """Draw the indices of `target_subset` critics, without replacement; None stands for all of them."""
        if self.config.target_subset == self.config.ensemble_size:
            return None
        keys = torch.rand(self.config.ensemble_size, generator=self.generator, device=self.generator.device)
        return keys.argsort()[: self.config.target_subset]


def make_sac(setup: AlgorithmSetup) -> SAC | DoubleDQN:
    """Make SAC with the settings `sac`, pretrained with the settings `offline`; a double DQN for choices alone."""
    setup.options()  # it has none
    config = setup.config
    if not setup.policy.continuous_size:
        if config.sac.imitated != "demonstrated":
            logger.warning(
                "sac.imitated=%s has no effect: here there are choices alone, and those that were demonstrated are "
                "imitated all alike",
                config.sac.imitated,
            )
        return DoubleDQN(setup.policy, return_range=setup.return_range, config=config.sac)
    gap = None
    if config.replay.simulated == "dynamics_gap":
        policy, returns = setup.policy, setup.return_range
        weight = config.replay.simulated_penalty * (1.0 if returns is None else returns[1] - returns[0])
        gap = DynamicsGap(policy.head.state_size, policy.continuous_size, weight, policy.generator)
    return SAC(
        setup.policy,
        return_range=setup.return_range,
        config=config.sac,
        pretraining=config.offline,
        bound=config.base.bound,
        penalty=config.base.penalty,
        gap=gap,
    )
