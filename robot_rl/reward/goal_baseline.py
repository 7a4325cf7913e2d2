"""How near an image is to a goal in words, with what any such image shows taken away (VLM-RM, Rocamonde 2023).

Pure functions of embeddings. A reward of this kind is a state's score: it does not know when a task is finished.
"""

from __future__ import annotations

from torch import Tensor


def mean_direction(embeddings: Tensor) -> Tensor:
    """Unit vector along the mean of several phrasings' embeddings, (P, D) -> (D,); each counts by its direction."""
    unit = embeddings / embeddings.norm(dim=-1, keepdim=True)
    mean = unit.mean(0)
    return mean / mean.norm()


def goal_baseline_reward(image: Tensor, goal: Tensor, baseline: Tensor | None, alpha: float) -> Tensor:
    """R = 1 - 1/2 |P_alpha (x - g)|^2 with P_alpha = alpha d d^T / |d|^2 + (1 - alpha) I and d = g - b.

    alpha = 0 is the cosine similarity with the goal; alpha = 1 looks only along the line from the baseline to the goal.
    It punishes going beyond the goal as much as falling short, so a baseline that is not below the goal turns it over.

    Args:
        image: x, unit vectors, shape (N, D).
        goal: g, a unit vector, shape (D,).
        baseline: b, a unit vector, shape (D,); None for alpha = 0.
        alpha: In [0, 1].

    Returns:
        R, shape (N,).

    Raises:
        ValueError: if alpha is above 0 and there is no baseline, or it equals the goal.
    """
    offset = image - goal
    if alpha > 0:
        if baseline is None or not (goal - baseline).any():
            raise ValueError("alpha above 0 needs a baseline that differs from the goal")
        direction = (goal - baseline) / (goal - baseline).norm()
        offset = alpha * (offset @ direction)[:, None] * direction + (1 - alpha) * offset
    return 1 - 0.5 * offset.square().sum(-1)
