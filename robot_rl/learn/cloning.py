"""Behaviour cloning: the baseline that imitates the demonstrations, and nothing else."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from robot_rl.errors import DataError, DivergedError
from robot_rl.learn.losses import gripper_index
from robot_rl.learn.networks import Policy

CHECKS = 50
"""How often the validation loss is measured, in equal parts of the run."""


@dataclass(frozen=True)
class CloningInfo:
    """How the training went.

    Attributes:
        train_loss: Loss on all training rows with the parameters that were kept.
        validation_loss: The same on the held-out episodes; NaN if none were held out.
        best_step: Step whose parameters were kept: the one of least validation loss, or the last one.
        validation_episodes: Number of episodes held out.
    """

    train_loss: float
    validation_loss: float
    best_step: int
    validation_episodes: int


def clone(
    observation: Tensor,
    action: Tensor,
    *,
    episode: np.ndarray,
    action_size: int,
    gripper: bool,
    hidden_sizes: tuple[int, ...],
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    validation_fraction: float = 0.2,
) -> tuple[Policy, CloningInfo]:
    """Regresses actions on observations and stops early: it keeps the parameters of least validation loss.

    The loss is the mean squared error of tanh(mean) on the continuous actions, plus the cross-entropy over the
    gripper's three actions. The standard deviation is not trained: let the policy act with `deterministic=True`.

    Args:
        observation: Scaled and stacked, shape (M, obs).
        action: In [-1, 1], shape (M, act).
        episode: Which episode a row belongs to, shape (M,); whole episodes are held out.
        action_size: Length of the action, with the gripper.
        gripper: Whether the last action is the gripper.
        hidden_sizes: Widths of the hidden layers.
        steps: Gradient steps.
        batch_size: Rows per step, drawn with replacement.
        learning_rate: Of Adam.
        seed: All randomness follows from it.
        validation_fraction: Share of episodes held out, at least one; 0 holds out none and keeps the last parameters.

    Returns:
        The policy, on the device of the data, and how the training went.

    Raises:
        DataError: if the columns differ in length, or no training episode would be left.
        DivergedError: if no validation loss was finite.
    """
    rows = len(observation)
    if not rows == len(action) == len(episode) or action.shape[-1] != action_size:
        raise DataError(
            f"cloning: {rows} observations, actions of shape {tuple(action.shape)}, {len(episode)} episode entries; "
            f"expected equal lengths and actions of {action_size}"
        )
    generator = torch.Generator(observation.device).manual_seed(seed)
    policy = Policy(
        observation_size=observation.shape[-1],
        action_size=action_size,
        gripper=gripper,
        hidden_sizes=hidden_sizes,
        generator=generator,
    )
    train, validation, held_out = _split(episode, validation_fraction, seed)
    train, validation = train.to(observation.device), validation.to(observation.device)
    trained = [*policy.actor.parameters(), *(policy.gripper.parameters() if policy.gripper is not None else ())]
    optimizer = torch.optim.Adam(trained, lr=learning_rate, fused=True)

    best_loss, best_step, best_state = math.inf, steps, policy.state_dict()  # the live ones, until a better copy
    interval = max(1, steps // CHECKS)
    for step in range(1, steps + 1):
        draw = torch.randint(len(train), (batch_size,), generator=generator, device=observation.device)
        picked = train[draw]
        optimizer.zero_grad()
        torch.autograd.backward(cloning_loss(policy, observation[picked], action[picked]))
        optimizer.step()
        if held_out and (step % interval == 0 or step == steps):
            loss = _evaluate(policy, observation[validation], action[validation])
            if loss < best_loss:
                best_loss, best_step, best_state = loss, step, copy.deepcopy(policy.state_dict())
    if held_out and not math.isfinite(best_loss):
        raise DivergedError(f"cloning: no finite validation loss in {steps} steps; lower learning_rate {learning_rate}")
    policy.load_state_dict(best_state)
    return policy, CloningInfo(
        train_loss=_evaluate(policy, observation[train], action[train]),
        validation_loss=best_loss if held_out else math.nan,
        best_step=best_step,
        validation_episodes=held_out,
    )


def cloning_loss(policy: Policy, observation: Tensor, action: Tensor) -> Tensor:
    """Mean squared error of tanh(mean), plus the mean over gripper critics of their cross-entropy; a scalar.

    The gripper critics' values serve as logits here, so that `Policy.act` picks the most likely action.
    """
    loss = mse_loss(policy(observation)[0].tanh(), action[:, : policy.continuous_size])
    if policy.gripper is not None:
        logits = policy.gripper(observation)
        loss = loss + cross_entropy(logits.flatten(0, 1), gripper_index(action).repeat(len(logits)))
    return loss


@torch.no_grad()
def _evaluate(policy: Policy, observation: Tensor, action: Tensor) -> float:
    return float(cloning_loss(policy, observation, action))


def _split(episode: np.ndarray, fraction: float, seed: int) -> tuple[Tensor, Tensor, int]:
    """Rows to train on, rows to validate on, and the number of episodes held out."""
    names = np.unique(episode)
    held_out = max(1, round(fraction * len(names))) if fraction > 0 else 0
    if held_out >= len(names):
        raise DataError(f"cloning: {len(names)} episodes, of which {held_out} would be held out; none is left to learn")
    chosen = np.random.default_rng(seed).permutation(names)[:held_out]
    validating = np.isin(episode, chosen)
    return torch.from_numpy(np.flatnonzero(~validating)), torch.from_numpy(np.flatnonzero(validating)), held_out
