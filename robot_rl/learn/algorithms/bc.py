"""Behaviour cloning: a policy that imitates demonstrations and interventions.

`BehaviourCloning` is the algorithm of a run; `clone` trains a policy on a fixed data set with early stopping.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from robot_rl.config.schedule import Rate
from robot_rl.errors import CheckpointError, ConfigError, DataError, DivergedError
from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.algorithms.base import Algorithm, AlgorithmSetup
from robot_rl.learn.algorithms.batch import Batch, check_batch
from robot_rl.learn.algorithms.losses import mean_of
from robot_rl.learn.algorithms.scheduled_values import ScheduledValues
from robot_rl.learn.networks.networks import Policy, choice_index
from robot_rl.learn.networks.parameters import load_modules

CHECKS = 50
"""How often the validation loss is measured, in equal parts of the run."""
STATE_FORMAT = 1
"""Of the state of `BehaviourCloning`."""


class BehaviourCloning(Algorithm):
    """Imitates every action that it is given: online this is learning from interventions (Kelly 2019, HG-DAgger).

    Args:
        policy: The policy that is trained, on its device.
        learning_rate: Of Adam, a number or a schedule.
    """

    capturable = divisible = True
    n_step, discount = 1, 1.0  # of what follows nothing is used

    def __init__(self, policy: Policy, learning_rate: Rate) -> None:
        self.policy = policy
        self._scheduled = ScheduledValues(policy.generator.device)
        rate = self._scheduled.follow("learning_rate", learning_rate)
        self._optimizer = Adam(policy.parameters(), rate, policy.ranks)

    def advance(self, env_steps: int) -> dict[str, float]:
        """Set what follows a schedule; see `Algorithm.advance`."""
        return self._scheduled.advance(env_steps)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Make one step down `cloning_loss` on each minibatch.

        Returns:
            The mean over the minibatches of `cloning_loss`.

        Raises:
            SpecError: if the batch does not fit the networks.
        """
        check_batch(batch, self.policy)
        rows = []
        for n in range(len(batch.reward)):
            part = batch.minibatch(n)
            loss = cloning_loss(self.policy, part.observation, part.action, part.images)
            # The part of a head that estimates the way to the goal has no part in it.
            self._optimizer.minimize(loss, allow_unused=True)
            rows.append(loss)
        return {"cloning_loss": mean_of(rows)}

    def pretrain(self, batch: Batch) -> dict[str, Tensor]:
        """Make one step on each minibatch, as `update`."""
        return self.update(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on."""
        state = {
            "format": STATE_FORMAT,
            "modules": {"policy": self.policy.state_dict()},
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
            raise CheckpointError(f"cloning state has format {state.get('format')}, this program reads {STATE_FORMAT}")
        try:
            load_modules({"policy": self.policy}, state["modules"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.policy.generator.set_state(state["generator"].cpu())
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"this state belongs to another learner: {error}") from error


def make_bc(setup: AlgorithmSetup) -> BehaviourCloning:
    """Make behaviour cloning with `sac.learning_rate`.

    Raises:
        ConfigError: if it would imitate its own actions.
    """
    setup.options()  # it has none
    config = setup.config
    if config.env_steps and config.replay.demo_fraction < 1:
        raise ConfigError(
            f"algorithm.name=bc imitates all that it is given, and with replay.demo_fraction="
            f"{config.replay.demo_fraction:g} that includes its own actions; set replay.demo_fraction=1, or env_steps=0"
        )
    return BehaviourCloning(setup.policy, config.sac.learning_rate)


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
    """Train `policy` to act as demonstrated, and stop early: keep the parameters of least validation loss.

    The loss is the mean squared error of tanh(mean) on the continuous actions, plus the cross-entropy over the choices
    of a gripper. The standard deviation is not trained: let the policy act with `deterministic=True`.

    Args:
        policy: A fresh one, trained in place; it is on the device of the data.
        observation: State, scaled and stacked, shape (M, state).
        action: In [-1, 1], shape (M, act).
        images: Features of K crops of each frame, shape (M, K, cameras, channels, rows, columns), of which it trains on
            random ones; None for a policy without images.
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
    """Return the mean squared error of tanh(mean), plus the mean cross-entropy of the gripper critics; a scalar.

    The gripper critics' values serve as logits here, so that `Policy.act` picks the most likely action.
    """
    latent = policy.head(observation, images)
    parts = []
    if policy.continuous_size:
        parts.append(mse_loss(policy(latent)[0].tanh(), action[:, : policy.continuous_size]))
    if policy.gripper is not None:
        logits = policy.gripper(latent)
        chosen = choice_index(action, policy.choices).repeat(len(logits))
        parts.append(cross_entropy(logits.flatten(0, 1), chosen))
    return sum(parts[1:], parts[0])


@torch.no_grad()
def _evaluate(policy: Policy, rows: Tensor, observation: Tensor, action: Tensor, images: Tensor | None) -> float:
    """Compute the loss on these rows, with crops that are not shifted."""
    seen = images[rows, 0] if images is not None else None
    return float(cloning_loss(policy, observation[rows], action[rows], seen))


def _random_crops(images: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one crop for each camera: (B, K, cameras, ...) -> (B, cameras, ...)."""
    count, crops, cameras = images.shape[:3]
    device = images.device
    chosen = torch.randint(crops, (count, cameras), generator=generator, device=device)
    return images[torch.arange(count, device=device)[:, None], chosen, torch.arange(cameras, device=device)]


def _split(episode: np.ndarray, fraction: float, seed: int) -> tuple[Tensor, Tensor, int]:
    """Return the rows to train on, the rows to validate on, and the number of episodes held out."""
    names = np.unique(episode)
    held_out = max(1, round(fraction * len(names))) if fraction > 0 else 0
    if held_out >= len(names):
        raise DataError(f"cloning: {len(names)} episodes, of which {held_out} would be held out; none is left to learn")
    chosen = np.random.default_rng(seed).permutation(names)[:held_out]
    validating = np.isin(episode, chosen)
    return torch.from_numpy(np.flatnonzero(~validating)), torch.from_numpy(np.flatnonzero(validating)), held_out
