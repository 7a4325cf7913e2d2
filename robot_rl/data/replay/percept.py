"""Percepts: observations as they are kept for learning, a row of state and, where the policy sees, images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from torch import Tensor

from robot_rl.errors import DataError

Images = np.ndarray | Tensor
"""Images that were looked at: an array, or a tensor on the device on which learning runs."""


@dataclass(frozen=True)
class ImageSpec:
    """Format of the images of one observation.

    Attributes:
        kind: `features`: of K crops of each frame, by a frozen encoder; networks see one crop at a time. `frames`: the
            frames themselves, of which networks see randomly shifted ones.
        shape: (K, cameras, channels, height, width) of features, (cameras, height, width, 3) of frames.
        dtype: `float16` of features, `uint8` of frames.
        maker: Name of the encoder and its settings; it differs wherever the numbers would.
        size: Height and width of the frames [px].
        shift: Largest random shift of frames, either way [px]; features are shifted when they are made.
    """

    kind: Literal["features", "frames"]
    shape: tuple[int, ...]
    dtype: str
    maker: str
    size: int
    shift: int = 0

    @property
    def view_shape(self) -> tuple[int, ...]:
        """Shape of what networks see of one observation: one crop of each camera."""
        return self.shape[1:] if self.kind == "features" else self.shape

    @property
    def nbytes(self) -> int:
        """Size of one observation's [bytes]."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def check(self, images: np.ndarray | None) -> np.ndarray:
        """`images`, if they are of this shape and dtype.

        Raises:
            DataError: naming what was given and what is valid.
        """
        if images is None or images.shape != self.shape or images.dtype != self.dtype:
            given = "none" if images is None else f"{images.dtype} of shape {images.shape}"
            raise DataError(f"images: got {given}, expected {self.kind}, {self.dtype} of shape {self.shape}")
        return images


class Percept(NamedTuple):
    """One observation.

    Attributes:
        state: Packed and scaled, shape (state_size,), float32.
        images: Of the shape and dtype of the `ImageSpec`; None where the policy does not see.
        potential: Phi, by which rewards are shaped; 0 where they are not.
    """

    state: np.ndarray
    images: np.ndarray | None = None
    potential: float = 0.0


class ToolElements(NamedTuple):
    """Which elements of a state tell where the tools are, of all arms in turn.

    Attributes:
        pose: Their poses.
        width: The widths of their grippers.
    """

    pose: tuple[int, ...] = ()
    width: tuple[int, ...] = ()


NO_TOOLS = ToolElements()


@dataclass(frozen=True)
class PerceptSpec:
    """Format of percepts.

    Attributes:
        state_size: Elements of the state.
        images: What is kept of the frames; None where the policy does not see.
        tools: Where the tools are, by which the way to a goal is measured; no elements where it is not used.
        potential: Largest potential; the least is 0. 0 where rewards are not shaped.
        unscaled: Elements of the state that networks standardise, as pairs of the first and the one behind the last.
        proposal: First element of the base's proposal in the state, and the one behind its last; None without a base.
    """

    state_size: int
    images: ImageSpec | None = None
    tools: ToolElements = NO_TOOLS
    potential: float = 0.0
    unscaled: tuple[tuple[int, int], ...] = ()
    proposal: tuple[int, int] | None = None


def check_maker(images: ImageSpec | None, saved: str | None) -> None:
    """Refuse images of another make.

    Args:
        images: What is kept; None keeps none.
        saved: What made those that were saved, or None.

    Raises:
        DataError: naming both makes.
    """
    maker = images.maker if images else None
    if maker != saved:
        raise DataError(
            f"replay state has images by {saved or 'nobody'}, this replay takes those by {maker or 'nobody'}; "
            "go on with the encoder settings of the run, or start a new run"
        )


def checked_percept(percept: Percept, state_size: int, images: ImageSpec | None, *, shaped: bool) -> Percept:
    """`percept`, if replay can keep it: of these sizes, finite, with images and a potential only if they are kept.

    Raises:
        DataError: naming what was given and what is valid.
    """
    if images is not None:
        images.check(percept.images)
    elif percept.images is not None:
        raise DataError("replay: got images, but keeps none")
    if not np.isfinite(percept.potential) or (percept.potential != 0.0 and not shaped):
        raise DataError(f"replay: potential is {percept.potential}, expected {'a finite one' if shaped else 'none'}")
    return percept._replace(state=checked_row("state", percept.state, state_size))


def check_reward(reward: float, limits: tuple[float, float] | None) -> None:
    """Refuse a reward that is not finite, or that alone leaves the range of returns.

    Raises:
        DataError: naming the reward and the range.
    """
    if not np.isfinite(reward):
        raise DataError(f"replay: reward is {reward}")
    if limits is None:
        return
    low, high = limits
    slack = 1e-6 * (high - low)
    if not low - slack <= reward <= high + slack:
        raise DataError(
            f"a reward of {reward:g} alone leaves the range of returns [{low:g}, {high:g}], to which critics' targets "
            "would be clamped; declare the true range (return_range of the task or environment)"
        )


def checked_row(what: str, value: np.ndarray, size: int) -> np.ndarray:
    """`value` as a finite float32 row of that size.

    Raises:
        DataError: naming what it is, what was given and what is valid.
    """
    row = np.asarray(value, np.float32)
    if row.shape != (size,):
        raise DataError(f"replay: {what} has shape {row.shape}, expected {(size,)}")
    if not np.isfinite(row).all():
        raise DataError(f"replay: {what} has a NaN or an infinity: {row.tolist()}")
    return row
