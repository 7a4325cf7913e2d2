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
from robot_rl.learn.algorithms.losses import gripper_index
from robot_rl.learn.networks.networks import Policy

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
    policy: Policy,
    observation: Tensor,
    action: Tensor,
    images: Tensor | None = None,
    *,
    episode: np.ndarray,
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    validation_fraction: float = 0.2,
) -> CloningInfo:
    """Trains `policy` to act as demonstrated, and stops early: it keeps the parameters of least validation loss.

    The loss is the mean squared error of tanh(mean) on the continuous actions, plus the cross-entropy over the
    gripper's three actions. The standard deviation is not trained: let the policy act with `deterministic=True`.

    Args:
        policy: A fresh one, trained in place; it is on the device of the data.
        observation: State, scaled and stacked, shape (M, state).
        action: In [-1, 1], shape (M, act).
        images: Features of K crops of each frame, shape (M, K, cameras, channels, rows, columns), of which it trains on
            random ones; None for a policy that does not see.
        episode: Which episode a row belongs to, shape (M,); whole episodes are held out.
        steps: Gradient steps.
        batch_size: Rows per step, drawn with replacement.
        learning_rate: Of Adam.
        seed: Which episodes are held out follows from it; all else that is random from the policy's generator.
        validation_fraction: Share of episodes held out, at least one; 0 holds out none and keeps the last parameters.

    Returns:
        How the training went.

    Raises:
        DataError: if the columns differ in length, or no training episode would be left.
        DivergedError: if no validation loss was finite.
    """
    rows = len(observation)
    if not rows == len(action) == len(episode) or action.shape[-1] != policy.action_size:
        raise DataError(
            f"cloning: {rows} observations, actions of shape {tuple(action.shape)}, {len(episode)} episode entries; "
            f"expected equal lengths and actions of {policy.action_size}"
        )
    generator = policy.generator
    if images is not None:
        policy.head.standardise(images[:, 0])
    train, validation, held_out = _split(episode, validation_fraction, seed)
    train, validation = train.to(observation.device), validation.to(observation.device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate, fused=True)

    best_loss, best_step, best_state = math.inf, steps, policy.state_dict()  # the live ones, until a better copy
    interval = max(1, steps // CHECKS)
    for step in range(1, steps + 1):
        draw = torch.randint(len(train), (batch_size,), generator=generator, device=observation.device)
        picked = train[draw]
        optimizer.zero_grad()
        crops = _random_crops(images[picked], generator) if images is not None else None
        torch.autograd.backward(cloning_loss(policy, observation[picked], action[picked], crops))
        optimizer.step()
        if held_out and (step % interval == 0 or step == steps):
            loss = _evaluate(policy, validation, observation, action, images)
            if loss < best_loss:
                best_loss, best_step, best_state = loss, step, copy.deepcopy(policy.state_dict())
    if held_out and not math.isfinite(best_loss):
        raise DivergedError(f"cloning: no finite validation loss in {steps} steps; lower learning_rate {learning_rate}")
    policy.load_state_dict(best_state)
    return CloningInfo(
        train_loss=_evaluate(policy, train, observation, action, images),
        validation_loss=best_loss if held_out else math.nan,
        best_step=best_step,
        validation_episodes=held_out,
    )


def cloning_loss(policy: Policy, observation: Tensor, action: Tensor, images: Tensor | None = None) -> Tensor:
    """Mean squared error of tanh(mean), plus the mean over gripper critics of their cross-entropy; a scalar.

    The gripper critics' values serve as logits here, so that `Policy.act` picks the most likely action.
    """
    latent = policy.head(observation, images)
    loss = mse_loss(policy(latent)[0].tanh(), action[:, : policy.continuous_size])
    if policy.gripper is not None:
        logits = policy.gripper(latent)
        loss = loss + cross_entropy(logits.flatten(0, 1), gripper_index(action).repeat(len(logits)))
    return loss


@torch.no_grad()
def _evaluate(policy: Policy, rows: Tensor, observation: Tensor, action: Tensor, images: Tensor | None) -> float:
    """The loss on these rows, with crops that are not shifted."""
    seen = images[rows, 0] if images is not None else None
    return float(cloning_loss(policy, observation[rows], action[rows], seen))


def _random_crops(images: Tensor, generator: torch.Generator) -> Tensor:
    """Of (B, K, cameras, ...) one crop for each camera, (B, cameras, ...)."""
    count, crops, cameras = images.shape[:3]
    device = images.device
    chosen = torch.randint(crops, (count, cameras), generator=generator, device=device)
    return images[torch.arange(count, device=device)[:, None], chosen, torch.arange(cameras, device=device)]


def _split(episode: np.ndarray, fraction: float, seed: int) -> tuple[Tensor, Tensor, int]:
    """Rows to train on, rows to validate on, and the number of episodes held out."""
    names = np.unique(episode)
    held_out = max(1, round(fraction * len(names))) if fraction > 0 else 0
    if held_out >= len(names):
        raise DataError(f"cloning: {len(names)} episodes, of which {held_out} would be held out; none is left to learn")
    chosen = np.random.default_rng(seed).permutation(names)[:held_out]
    validating = np.isin(episode, chosen)
    return torch.from_numpy(np.flatnonzero(~validating)), torch.from_numpy(np.flatnonzero(validating)), held_out
