"""Double Q-learning of discrete choices (Mnih 2015; van Hasselt 2016), beside continuous actions or alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from robot_rl.config.components import SACConfig
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.algorithms.base import Algorithm, StepTransform
from robot_rl.learn.algorithms.batch import Batch, check_batch
from robot_rl.learn.algorithms.horizon import USUAL_STEPS, horizon_discount
from robot_rl.learn.algorithms.imitation import Imitation, make_imitation
from robot_rl.learn.algorithms.scheduled_values import ScheduledValues
from robot_rl.learn.networks.networks import Policy, StackedMLP, choice_index
from robot_rl.learn.networks.parameters import load_modules

STATE_FORMAT = 1
"""Of the state of `DoubleDQN`."""


class ChoiceValues(NamedTuple):
    """What the critics of a choice are trained on.

    Attributes:
        values: Q of the choices that were made, shape (E, B).
        target: y, shape (B,).
        free: y before it was clamped, shape (B,).
        held: 1 where a choice was held for its whole chunk, else 0: such a row teaches nothing of it, shape (B,). None
            without chunks.
        kept_loss: What keeps a base's choices where no other one was made, `losses.base_choice_loss`, and demonstrated
            ones, `Imitation.of_choices`; 0 without either.
    """

    values: Tensor
    target: Tensor
    free: Tensor
    held: Tensor | None
    kept_loss: Tensor


def choice_values(
    policy: Policy,
    targets: StackedMLP,
    latents: tuple[Tensor, Tensor],
    batch: Batch,
    return_range: tuple[float, float] | None,
    imitation: Imitation | None,
) -> ChoiceValues:
    """Return values and targets of the choices in one minibatch.

    Args:
        policy: Its critics of the choice are those that learn.
        targets: Those that follow them.
        latents: The input of the critics in s and in s', shape (B, size) each.
        batch: One minibatch; the last entry of an action is the choice.
        return_range: To which targets are clamped; None leaves them as they are.
        imitation: Of what was demonstrated; None: nothing is imitated.

    Raises:
        ConfigError: if the policy makes no choices.
    """
    if (critics := policy.gripper) is None:
        raise ConfigError("the policy makes no choices, and has no critics of them")
    latent, next_latent = latents
    with torch.no_grad():  # y = R + gamma^m min_i Q'_i(s', g), g = argmax_g mean_j Q_j(s', g) or that of a base
        next_values, next_targets = critics(next_latent).float(), targets(next_latent).float()
        choice = policy.gripper_choice(next_values.mean(0), batch.next_observation)
        free = losses.choice_target(batch.reward, batch.discount, choice, next_targets, None)
        target = free if return_range is None else free.clamp(*return_range)
    # A chunk holds its choice. Where somebody took over within the window, its return says nothing of the first choice.
    held = batch.action[:, -1].isfinite().float() if policy.chunk.length > 1 else None
    made = choice_index(batch.action if held is None else batch.action.nan_to_num(), policy.choices)
    values = critics(latent).float()
    base = policy.base_choice(batch.observation)
    kept_loss = values.new_zeros(()) if base is None else losses.base_choice_loss(values, base, made)
    if imitation is not None:
        kept_loss = kept_loss + imitation.of_choices(values, made, batch)
    return ChoiceValues(losses.values_of(values, made), target, free, held, kept_loss)


class DoubleDQN(Algorithm):
    """What SAC becomes where an action is nothing but a choice: only the critics of the choice are left to learn.

    Args:
        policy: What is learned, on its device; all randomness comes from its generator.
        return_range: Smallest and largest possible discounted return; None: not known.
        config: Hyper-parameters; those of continuous actions are ignored.

    Raises:
        ConfigError: if there are continuous actions.
    """

    capturable = divisible = True

    def __init__(self, policy: Policy, *, return_range: tuple[float, float] | None, config: SACConfig) -> None:
        if policy.gripper is None or policy.continuous_size:
            raise ConfigError("a double DQN learns nothing but choices; choose SAC for continuous actions")
        if policy.chunk.length > 1:
            raise ConfigError(
                f"algorithm.chunk={policy.chunk.length} with actions that are choices alone: a chunk has continuous "
                "actions; set algorithm.chunk=1"
            )
        self.policy, self.config = policy, config
        self.n_step, self.discount = config.n_step, config.discount or horizon_discount(USUAL_STEPS)
        self._clamp = return_range if config.clamp_targets else None
        self._critics, self._targets = policy.gripper, copy.deepcopy(policy.gripper).requires_grad_(False)
        self._scheduled = ScheduledValues(policy.generator.device)
        rate = self._scheduled.follow("learning_rate", config.learning_rate)
        self._imitation = make_imitation(config, return_range, policy, self._scheduled)
        self._followed: list[Tensor] = list(self._critics.parameters())
        self._following: list[Tensor] = list(self._targets.parameters())
        self._optimizer = Adam([*self._followed, *policy.head.parameters()], rate, policy.ranks)
        self._modules = {"policy": policy, "gripper_target": self._targets}
        self._run_step = self._step

    def advance(self, env_steps: int) -> dict[str, float]:
        """Set what follows a schedule; see `Algorithm.advance`."""
        return self._scheduled.advance(env_steps)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Update the critics on each of the N minibatches.

        Returns:
            Means over the minibatches of `critic_loss`, of the figures of `losses.critic_figures`, and of
            `critic_gradient`, the norm.

        Raises:
            SpecError: if the batch does not fit the networks.
        """
        check_batch(batch, self.policy)
        rows = [self._run_step(batch.minibatch(n)) for n in range(len(batch.reward))]
        return {name: losses.mean_of([row[name] for row in rows]) for name in rows[0]}

    def transform_steps(self, transform: StepTransform) -> None:
        """Replace the step of the critics."""
        self._run_step = transform(self._run_step)

    @torch.no_grad()
    def value(self, state: Tensor, images: Tensor | None) -> Tensor:
        """Return max_g mean_i Q_i(s, g) of states (B, state) with images (B, *view_shape), shape (B,)."""
        values: Tensor = self._critics(self.policy.head(state, images))
        return values.float().mean(0).amax(-1)

    def _step(self, batch: Batch) -> dict[str, Tensor]:
        """Make one step of critics and head on one minibatch, and of the targets after them."""
        head = self.policy.head
        latent = head(batch.observation, batch.images)
        with torch.no_grad():
            next_latent = head(batch.next_observation, batch.next_images)
        choice = choice_values(self.policy, self._targets, (latent, next_latent), batch, self._clamp, self._imitation)
        values, target, free = choice.values, choice.target, choice.free
        # L = sum_i mean_b (Q_i(s, g) - y)^2, and what keeps choices of a base or of demonstrations
        loss = losses.critic_loss(values, target) + choice.kept_loss
        figures = losses.critic_figures(values.detach(), target, free, self._clamp)
        # A head may have a part that estimates the way to a goal, which has no gradient here.
        gradient = self._optimizer.minimize(loss, allow_unused=True)
        with torch.no_grad():  # theta' <- (1 - tau) theta' + tau theta
            torch._foreach_lerp_(self._following, self._followed, self.config.target_rate)
        return {"critic_loss": loss.detach(), **figures, "critic_gradient": gradient}

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on."""
        state = {
            "format": STATE_FORMAT,
            "modules": {name: module.state_dict() for name, module in self._modules.items()},
            "optimizer": self._optimizer.state_dict(),
            "generator": self.policy.generator.get_state(),
        }
        return copy.deepcopy(state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            CheckpointError: if the state has another format or other sizes.
        """
        if state.get("format") != STATE_FORMAT:
            raise CheckpointError(
                f"state of a choice has format {state.get('format')}, this program reads {STATE_FORMAT}"
            )
        try:
            load_modules(self._modules, state["modules"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.policy.generator.set_state(state["generator"].cpu())
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"this state belongs to another learner: {error}") from error
