"""Progress by a small causal transformer on a frozen image encoder, trained on the user's own episodes.

As in ReWiND (Zhang 2025). The progress of a frame follows from the frames up to it. Only the first of them is marked;
no other has a position code, because a head that counted would call everything progress that lasts. It is trained on
successes, of which many are played backwards from somewhere on, so that it sees progress undone; and on failures, which
came near at most. One head is for one task, so it takes no instruction. This file also reads and writes heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from robot_rl.reward.heads.frame_features import FeatureHead
from robot_rl.reward.heads.head_file import ReadFile, made_of, read_content, write_tree
from robot_rl.system.model_files import PROGRESS_HEAD

COMPONENTS = 128
"""Of the features; principal ones of the frames that it is trained on."""
WIDTH, LAYERS, ATTENTION_HEADS, DROPOUT = 64, 2, 4, 0.1
UPDATES, CLIPS, LEARNING_RATE, WEIGHT_DECAY = 400, 32, 1e-3, 1e-4
"""Of the training: clips are those of one update; the rate falls to a tenth along a cosine."""
LEAST_FRAMES, MOST_FRAMES = 4, 16
"""Of a clip."""
REWOUND = 0.8
"""Share of the clips of successes that are played backwards from somewhere on."""
FAILURE_AT_MOST = 0.6
"""A failure may come near; more than this of one is wrong."""


class ProgressNet(nn.Module):
    """Components of frames in their order -> how far each is.

    Args:
        components: Of each frame.
    """

    def __init__(self, components: int) -> None:
        super().__init__()
        self.see = nn.Linear(components, WIDTH)
        self.first = nn.Parameter(torch.zeros(WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, ATTENTION_HEADS, 2 * WIDTH, DROPOUT, activation="gelu", batch_first=True, norm_first=True
        )
        self.mix = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, components: Tensor) -> Tensor:
        """Compute progress in (0, 1), (B, N, components) -> (B, N)."""
        seen = self.see(components)
        seen = torch.cat([seen[:, :1] + self.first, seen[:, 1:]], 1)
        earlier = nn.Transformer.generate_square_subsequent_mask(seen.shape[1])
        progress: Tensor = self.last(self.mix(seen, mask=earlier, is_causal=True))[..., 0].sigmoid()
        return progress


@dataclass(frozen=True, eq=False)
class ProgressHead(FeatureHead):
    """A head for the progress of a task at each frame of an episode.

    Attributes:
        mean: Of the features, shape (features,).
        basis: Components are (f - mean) @ basis, of standard deviation 1; shape (features, components).
        net: What makes progress of them.
    """

    mean: Tensor
    basis: Tensor
    net: ProgressNet

    @property
    def numbers(self) -> Sequence[Tensor]:
        """See `FeatureHead.numbers`."""
        return self.basis, self.mean, *self.net.state_dict().values()

    @torch.inference_mode()
    def __call__(self, features: Tensor) -> Tensor:
        """Return progress in [0, 1] at each of the frames of an episode, in their order, (N, features) -> (N,)."""
        return self.of_components(self.components(features))

    def components(self, features: Tensor) -> Tensor:
        """Project features to components, (N, features) -> (N, components)."""
        return (features - self.mean) @ self.basis

    @torch.inference_mode()
    def of_components(self, components: Tensor) -> Tensor:
        """Return progress by the components of frames, (N, components) -> (N,)."""
        progress: Tensor = self.net(components[None])[0]
        return progress

    def write(self, path: Path) -> None:
        """Write the head to a file.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        tree = {field.name: getattr(self, field.name) for field in fields(self)}
        tree |= {"trained_on": list(self.trained_on), "net": self.net.state_dict()}
        write_tree(path, PROGRESS_HEAD.tree(tree))


def progress_head_of(tree: Mapping[str, Any]) -> ProgressHead:
    """Return the progress head of a tree that `ProgressHead.write` wrote.

    Raises:
        ValueError: if it is of another kind or version.
    """
    parts = PROGRESS_HEAD.parts(tree)
    net = ProgressNet(parts["basis"].shape[1])
    net.load_state_dict(parts["net"])
    return ProgressHead(**{**parts, "trained_on": tuple(parts["trained_on"]), "net": net.eval()})


def principal_components(features: Tensor, *, seed: int) -> tuple[Tensor, Tensor]:
    """Return mean and basis, as in `ProgressHead`, of features (M, features); randomised by the seed."""
    mean = features.mean(0)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        _, lengths, basis = torch.pca_lowrank(features - mean, q=min(COMPONENTS, *features.shape), center=False)
    deviation = lengths / len(features) ** 0.5
    return mean, basis / deviation.clamp_min(1e-2 * float(deviation[0]) + 1e-12)  # what hardly changes stays small


def train_progress_net(
    episodes: Sequence[Tensor], succeeded: Sequence[bool], *, seed: int, updates: int = UPDATES
) -> ProgressNet:
    """Train a network on clips: squared error on successes, and of the part above `FAILURE_AT_MOST` on failures.

    Successes and failures have the same number of clips in an update, if there are failures.

    Args:
        episodes: Components of the frames of each, evenly spaced from its start to its end, (N, components).
        succeeded: Whether it did; at least one did. Then its progress is the share of its time that has passed.
        seed: Of parameters and clips.
        updates: Of the parameters.
    """
    rng = np.random.default_rng(seed)
    groups = [[e for e, good in zip(episodes, succeeded, strict=True) if good == wanted] for wanted in (True, False)]
    groups = [group for group in groups if group]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = ProgressNet(episodes[0].shape[1])
        optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates, LEARNING_RATE / 10)
        each = CLIPS // len(groups)
        good = torch.arange(each * len(groups))[:, None] < each
        for _ in range(updates):
            length = int(rng.integers(LEAST_FRAMES, MOST_FRAMES + 1))
            clips = [
                _clip(group[rng.integers(len(group))], length, group is groups[0], rng)
                for group in groups
                for _ in range(each)
            ]
            progress, target = net(torch.stack([clip for clip, _ in clips])), torch.stack([t for _, t in clips])
            error = torch.where(good, progress - target, (progress - FAILURE_AT_MOST).clamp_min(0.0))
            optimizer.zero_grad()
            error.square().mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return net.eval()


def _clip(episode: Tensor, length: int, good: bool, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw frames from the start to somewhere, of a success perhaps back again; return them and their progress."""
    last = len(episode) - 1
    end = rng.uniform(0.2, 1.0) * last
    if good and rng.uniform() < REWOUND:
        turn = int(rng.integers(2, length))
        back = np.linspace(end, rng.uniform(0.0, end), length - turn + 1)[1:]
        at = np.concatenate([np.linspace(0.0, end, turn), back])
    else:
        at = np.linspace(0.0, end, length)
    rows = np.rint(at).astype(int)
    return episode[rows], torch.from_numpy(rows / max(last, 1)).float()


@dataclass(frozen=True, eq=False)
class ProgressHeadFile(ReadFile):
    """A progress head, and the bytes of its file.

    Attributes:
        head: The head.
    """

    head: ProgressHead


def read_progress_head_file(path: Path) -> ProgressHeadFile:
    """Read what `ProgressHead.write` wrote.

    Raises:
        DataError: if there is none, it is damaged, or it is a head for labels of another kind.
    """
    what = PROGRESS_HEAD.label
    content = read_content(path, what, PROGRESS_HEAD.source)
    return ProgressHeadFile(path, content, made_of(content, path, progress_head_of, what))
