"""Success by a linear head on a frozen image encoder, trained on the user's own episodes: needs no server and no hub.

It judges one frame. The last frame of a success is a positive example; every frame of a failure, and the earlier ones
of a success, are negative ones: so it has to see what tells a finished task from one that is nearly finished.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from robot_rl.durable import replace_file
from robot_rl.errors import DataError
from robot_rl.files import writing
from robot_rl.learn.encoders import make_encoder

FORMAT = 1
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Of the squared weights; the one of least loss on held-out episodes is taken."""
FOLDS = 4
FEWEST = 5
"""Least successes, and least failures, to train on."""


class FrameFeatures:
    """Features of frames by a frozen encoder, one frame at a time, so that a frame's are the same in any company.

    Args:
        encoder: As `EncoderConfig.name`: `bundled`, or `random` to compare with.
        size: Height and width to which frames are brought [px].
    """

    def __init__(self, encoder: str, size: int) -> None:
        self.encoder, self.size = encoder, size
        self._network = make_encoder(encoder)

    @torch.inference_mode()
    def __call__(self, frames: np.ndarray) -> Tensor:
        """uint8 (N, height, width, 3) -> (N, features)."""
        rows = []
        for frame in frames:
            picture = Image.fromarray(frame).resize((self.size, self.size), Image.Resampling.BILINEAR)
            pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float()
            rows.append(self._network(pixels).flatten())
        return torch.stack(rows)


@dataclass(frozen=True, eq=False)
class SuccessHead:
    """p = sigmoid(w (f - mean) / deviation + b).

    Attributes:
        encoder: Whose features it is for.
        size: Of the frames [px].
        camera: Who sees them.
        task: What the robot was to do.
        trained_on: Ids of the episodes that it was trained on; a report leaves them out.
        mean: Of the features, shape (features,).
        deviation: Of the features, shape (features,).
        weight: w, shape (features,).
        bias: b.
    """

    encoder: str
    size: int
    camera: str
    task: str
    trained_on: tuple[str, ...]
    mean: Tensor
    deviation: Tensor
    weight: Tensor
    bias: float

    def __call__(self, features: Tensor) -> Tensor:
        """Probability of success, (N, features) -> (N,)."""
        return torch.sigmoid((features - self.mean) / self.deviation @ self.weight + self.bias)

    def write(self, path: Path) -> None:
        """Writes it to a file.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        content = io.BytesIO()
        torch.save({"format": FORMAT, **vars(self), "trained_on": list(self.trained_on)}, content)
        with writing(path):
            replace_file(path, [content.getvalue()])


def read_head(path: Path) -> SuccessHead:
    """What `SuccessHead.write` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    try:
        tree: dict[str, Any] = torch.load(path, weights_only=True)
        if tree.pop("format") != FORMAT:
            raise ValueError("it is of another version")
        return SuccessHead(**{**tree, "trained_on": tuple(tree["trained_on"])})
    except FileNotFoundError as error:
        raise DataError(f"{path}: no head there; `robot-rl label train` makes one") from error
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError, UnpicklingError) as error:
        raise DataError(f"{path}: is no success head: {error}") from error


def train_head(
    features: Tensor, positive: Tensor, episode: np.ndarray, *, seed: int
) -> tuple[Tensor, Tensor, Tensor, float, float]:
    """Logistic regression with a penalty that is chosen on held-out episodes; both classes weigh the same.

    Args:
        features: Of N frames, shape (N, features).
        positive: Which of them show success, shape (N,), bool.
        episode: Of each frame, shape (N,); whole episodes are held out.
        seed: How they are shared out.

    Returns:
        Mean and deviation of the features, weight, bias, and the penalty that was chosen.
    """
    mean, deviation = features.mean(0), features.std(0)
    deviation = deviation.clamp(min=1e-3 * float(deviation.max()) + 1e-12)
    x, y = (features - mean) / deviation, positive.float()
    fold_of = {name: n % FOLDS for n, name in enumerate(_interleaved(episode, positive.numpy(), seed))}
    fold = torch.tensor([fold_of[name] for name in episode.tolist()])
    losses = {penalty: 0.0 for penalty in PENALTIES}
    for number in range(FOLDS):
        held = fold == number
        if y[held].sum() == 0 or y[~held].sum() == 0:
            continue
        for penalty in PENALTIES:
            weight, bias = _logistic(x[~held], y[~held], penalty)
            losses[penalty] += float(_loss(x[held], y[held], weight, bias))
    best = min(PENALTIES, key=lambda penalty: losses[penalty])
    weight, bias = _logistic(x, y, best)
    return mean, deviation, weight, float(bias), best


def _interleaved(episode: np.ndarray, positive: np.ndarray, seed: int) -> Sequence[Any]:
    """Episodes in random order, successes first: dealt out in turn, every fold gets its share of both."""
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
        loss = _loss(x, y, weight, bias) + penalty * weight.square().sum()
        torch.autograd.backward(loss)
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


def _loss(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    balance = (1 - y).sum() / y.sum()
    return binary_cross_entropy_with_logits(x @ weight + bias, y, pos_weight=balance)
