"""Progress as a potential for shaping: a head's progress of the episode so far, step by step.

By a potential the return of every episode changes by that of its first observation alone, whatever the potential (Ng,
Harada and Russell 1999; for one that depends on the past: Devlin and Kudenko 2012). So a head that is wrong costs time,
but does not change the best policy.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import MOST_FRAMES, ProgressHead


class ProgressPotential:
    """Phi = scale * progress, in [0, scale].

    Args:
        head: Computes the progress.
        scale: Phi of a task that is done.

    Attributes:
        encoder: As in `Potential`.
        camera: As in `Potential`.
        size: As in `Potential`.
        limit: As in `Potential`.
    """

    def __init__(self, head: ProgressHead, scale: float) -> None:
        self._head, self.limit = head, scale
        self.encoder, self.camera, self.size = head.encoder, head.camera, head.size
        self._features: FrameFeatures | None = None

    def encode(self, frame: np.ndarray) -> Tensor:
        """Encode a frame (height, width, 3), uint8; shape (features,)."""
        if self._features is None:  # only where nobody else computes them
            self._features = FrameFeatures(self.encoder, self.size)
        return self._features(frame[None])[0]

    def begin(self) -> EpisodePotential:
        """Return the potential of a new episode."""
        return EpisodePotential(self._head, self.limit)


class EpisodePotential:
    """Phi of one episode; it receives the frames in their order.

    Each frame is evaluated as the last of at most `MOST_FRAMES` that are evenly spaced from the first one
    on, as in the training of the head.

    Args:
        head: Computes the progress.
        scale: Phi of a task that is done.
    """

    def __init__(self, head: ProgressHead, scale: float) -> None:
        self._head, self._scale = head, scale
        self._seen: list[Tensor] = []  # components of each frame

    @torch.inference_mode()
    def __call__(self, features: Tensor) -> float:
        """Return Phi of the next frame, by its features, shape (features,)."""
        self._seen.append(self._head.components(features[None])[0])
        last = len(self._seen) - 1
        rows = np.unique(np.rint(np.linspace(0, last, MOST_FRAMES)).astype(int))
        return self._scale * float(self._head.of_components(torch.stack([self._seen[row] for row in rows]))[-1])
