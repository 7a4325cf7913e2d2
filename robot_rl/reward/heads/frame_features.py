"""Features of frames by a frozen image encoder, and the common part of all heads on them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from robot_rl.errors import DataError
from robot_rl.learn.engine.hardware import Precision, computed_in
from robot_rl.learn.networks.encoders import make_encoder


@dataclass(frozen=True, eq=False)
class FeatureHead:
    """A head on the features of frames of one camera.

    Attributes:
        encoder: Name of the encoder.
        size: Height and width of the frames [px].
        camera: Name of the camera.
        task: What the robot was to do.
        trained_on: Ids of the episodes that it was trained on; a report leaves them out.
    """

    encoder: str
    size: int
    camera: str
    task: str
    trained_on: tuple[str, ...]

    @property
    def numbers(self) -> Sequence[Tensor]:
        """Its numbers, by which one head differs from another."""
        raise NotImplementedError

    @property
    def revision(self) -> str:
        """Hash of its numbers, as labels know it."""
        content = b"".join(tensor.numpy().tobytes() for tensor in self.numbers)
        return f"sha256-{hashlib.sha256(content).hexdigest()[:16]}"


class FrameFeatures:
    """Features of frames by a frozen encoder.

    Args:
        encoder: As `EncoderConfig.name`: `bundled`, or `random` to compare with.
        size: Height and width to which frames are brought [px].
        batch: Frames at a time; with 1, a frame's features do not depend on the other frames, to the last digit.
        precision: Of the computation.
    """

    def __init__(self, encoder: str, size: int, *, batch: int = 1, precision: Precision = "float32") -> None:
        self._size, self._batch, self._dtype = size, batch, computed_in(precision)
        self._network = make_encoder(encoder).to(self._dtype)

    @torch.inference_mode()
    def __call__(self, frames: np.ndarray) -> Tensor:
        """Encode frames, uint8 (N, height, width, 3) -> (N, features), float32.

        Raises:
            DataError: if they are no RGB images.
        """
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
            raise DataError(f"frames are {frames.dtype} {frames.shape}, must be RGB: uint8 (n, height, width, 3)")
        rows = []
        for start in range(0, len(frames), self._batch):
            pixels = np.stack([self._resized(frame) for frame in frames[start : start + self._batch]])
            images = torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self._dtype)
            rows.append(self._network(images).flatten(1).float())
        return torch.cat(rows)

    def _resized(self, frame: np.ndarray) -> np.ndarray:
        if frame.shape[:2] == (self._size, self._size):
            return frame
        return np.asarray(Image.fromarray(frame).resize((self._size, self._size), Image.Resampling.BILINEAR))
