"""What one learner call is fed."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """N minibatches of B transitions on the learner's device, float32 but for the images.

    Attributes:
        observation: State, scaled to about 1 and history-stacked, shape (N, B, state).
        action: Executed, in [-1, 1], shape (N, B, act).
        reward: Discounted sum over the m <= n steps of the window, sum_k gamma^k r_{t+k}; shape (N, B).
        discount: gamma^m, or 0 where the window ended in termination; shape (N, B).
        next_observation: What the window's last step led to, shape (N, B, state).
        images: What networks see at step t, shape (N, B, *view_shape); None where they do not see.
        next_images: What they see after the window's last step.
        to_goal: How far the tcp's pose is from where the episode succeeded, scaled as in the state, shape (N, B, pose);
            NaN where it did not. None where nobody asks for it.
    """

    observation: Tensor
    action: Tensor
    reward: Tensor
    discount: Tensor
    next_observation: Tensor
    images: Tensor | None = None
    next_images: Tensor | None = None
    to_goal: Tensor | None = None

    def minibatch(self, n: int) -> Batch:
        """The n-th minibatch, without the leading N."""
        return Batch._make(None if column is None else column[n] for column in self)
