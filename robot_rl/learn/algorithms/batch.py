"""The input of one call of an algorithm: minibatches of transitions."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from robot_rl.errors import SpecError
from robot_rl.learn.networks.networks import Policy


class Batch(NamedTuple):
    """N minibatches of B transitions on the learner's device, float32 but for the images.

    Attributes:
        observation: State, scaled to about 1 and history-stacked, shape (N, B, state).
        action: Executed, in [-1, 1], shape (N, B, act); with chunks those of h steps, as `ChunkLayout` has them.
        reward: Discounted sum over the m <= n steps of the window, sum_k gamma^k r_{t+k}; shape (N, B).
        discount: gamma^m, or 0 where the window ended in termination; shape (N, B).
        next_observation: What the window's last step led to, shape (N, B, state).
        images: Images of step t as the networks take them, shape (N, B, *view_shape); None for a policy without images.
        next_images: Those after the window's last step.
        to_goal: How far the tools' poses are from those at the step's goal, scaled as in the state, shape (N, B, pose);
            NaN where the episode did not succeed. None where it is not used.
        simulated: 1 where step t is of another run, usually in simulation, else 0, shape (N, B); None where that is not
            known. Windows of such steps have one step.
        following: State after step t, shape (N, B, state); None with `simulated`.
        demonstrated: How many of the row's actions, from its first one on, count as demonstrated, also as a correction:
            0 or 1, with chunks up to h, shape (N, B); None: unknown.
        corrected: 1 where it is such a correction, else 0, shape (N, B); None with `demonstrated`.
    """

    observation: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_observation: Tensor
    images: Tensor | None = None
    next_images: Tensor | None = None
    to_goal: Tensor | None = None
    simulated: Tensor | None = None
    following: Tensor | None = None
    demonstrated: Tensor | None = None
    corrected: Tensor | None = None

    def minibatch(self, n: int) -> Batch:
        """Return the n-th minibatch, without the leading N."""
        return Batch._make(None if column is None else column[n] for column in self)


def check_batch(batch: Batch, policy: Policy) -> None:
    """Check that the shapes of a batch fit a policy.

    Raises:
        SpecError: naming the column, its shape and the expected one.
    """
    shape = tuple(batch.reward.shape)
    if len(shape) != 2 or 0 in shape:
        raise SpecError(f"batch.reward: shape {shape}, expected (N, B), neither of them 0")
    for name, end in (("action", (policy.action_size,)), ("discount", ())):
        value = getattr(batch, name)
        if tuple(value.shape) != (*shape, *end):
            raise SpecError(f"batch.{name}: shape {tuple(value.shape)}, expected (N, B) = {shape} and {end}")
    policy.head.check(shape, batch.observation, batch.images)
    policy.head.check(shape, batch.next_observation, batch.next_images)
