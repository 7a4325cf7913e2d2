"""Success by linear heads on a frozen image encoder, trained on the user's own episodes: needs no server and no hub.

They classify one frame of one camera. Each member is trained without one part of the episodes, on which its error is
measured; the mean of the members is the result, their spread its uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from robot_rl.reward.heads.frame_features import FeatureHead
from robot_rl.reward.heads.head_file import write_tree
from robot_rl.system.model_files import SUCCESS_HEAD

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Of the squared weights; the one of least loss on held-out episodes is taken."""
FOLDS = 5
"""Parts of the episodes; as many heads."""
FEWEST = 5
"""Least successes, and least failures, to train on."""


@dataclass(frozen=True, eq=False)
class SuccessHead(FeatureHead):
    """p = sigmoid of the mean over members of w (f - mean) / deviation + b.

    Attributes:
        mean: Of the features, shape (features,).
        deviation: Of the features, shape (features,).
        weight: w, shape (members, features).
        bias: b, shape (members,).
    """

    mean: Tensor
    deviation: Tensor
    weight: Tensor
    bias: Tensor

    @property
    def numbers(self) -> Sequence[Tensor]:
        """See `FeatureHead.numbers`."""
        return self.weight, self.mean

    def logits(self, features: Tensor) -> Tensor:
        """Return the logit of each member, (N, features) -> (N, members)."""
        return (features - self.mean) / self.deviation @ self.weight.T + self.bias

    def __call__(self, features: Tensor) -> Tensor:
        """Return the probability of success, (N, features) -> (N,)."""
        return torch.sigmoid(self.logits(features).mean(1))

    def tree(self) -> dict[str, Any]:
        """Return the content of its file."""
        return SUCCESS_HEAD.tree({**vars(self), "trained_on": list(self.trained_on)})

    def write(self, path: Path) -> None:
        """Write the head to a file.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        write_tree(path, self.tree())


def head_of(tree: Mapping[str, Any]) -> SuccessHead:
    """Return the head of a tree from `SuccessHead.tree`.

    Raises:
        ValueError: if it is of another kind or version.
    """
    parts = SUCCESS_HEAD.parts(tree)
    return SuccessHead(**{**parts, "trained_on": tuple(parts["trained_on"])})


class TrainedHead(NamedTuple):
    """The result of `train_head`.

    Attributes:
        mean: As in `SuccessHead`, like the next three.
        deviation: Of the features.
        weight: Of each member.
        bias: Of each member.
        fold: Part in which each example's episode is, shape (N,); member n is not trained on those of part n.
        held_out: Logit of each example by the member that was not trained on it, shape (N,).
    """

    mean: Tensor
    deviation: Tensor
    weight: Tensor
    bias: Tensor
    fold: Tensor
    held_out: Tensor


def train_head(features: Tensor, positive: Tensor, episode: np.ndarray, *, seed: int) -> TrainedHead:
    """Fit one member for each part of the episodes, by logistic regression on the other parts; classes weigh the same.

    The penalty of the squared weights is the one with the least loss on the held-out parts.

    Args:
        features: Of N frames, shape (N, features).
        positive: Which of them show success, shape (N,), bool; in at least `FEWEST` episodes, and so are the others.
        episode: Of each frame, shape (N,); whole episodes are held out.
        seed: How they are shared out.
    """
    mean, deviation = features.mean(0), features.std(0)
    deviation = deviation.clamp(min=1e-3 * float(deviation.max()) + 1e-12)
    x, y = (features - mean) / deviation, positive.float()
    fold_of = {name: n % FOLDS for n, name in enumerate(_interleaved(episode, positive.numpy(), seed))}
    fold = torch.tensor([fold_of[name] for name in episode.tolist()])
    found = []
    for penalty in PENALTIES:
        members = [_logistic(x[fold != number], y[fold != number], penalty) for number in range(FOLDS)]
        weight, bias = torch.stack([w for w, _ in members]), torch.stack([b for _, b in members])
        held_out = (x @ weight.T + bias).gather(1, fold[:, None])[:, 0]
        found.append((float(_loss(held_out, y)), TrainedHead(mean, deviation, weight, bias, fold, held_out)))
    return min(found, key=lambda pair: pair[0])[1]


def _interleaved(episode: np.ndarray, positive: np.ndarray, seed: int) -> Sequence[Any]:
    """Return episodes in random order, successes first: dealt out in turn, every fold gets its share of both."""
    names = np.unique(episode)
    order = np.random.default_rng(seed).permutation(names)
    succeeded = {name for name, one in zip(episode.tolist(), positive.tolist(), strict=True) if one}
    return sorted(order.tolist(), key=lambda name: name not in succeeded)


def _logistic(x: Tensor, y: Tensor, penalty: float) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = _loss(x @ weight + bias, y) + penalty * weight.square().sum()
        torch.autograd.backward(loss)
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


def _loss(logits: Tensor, y: Tensor) -> Tensor:
    balance = (1 - y).sum() / y.sum()
    return binary_cross_entropy_with_logits(logits, y, pos_weight=balance)
