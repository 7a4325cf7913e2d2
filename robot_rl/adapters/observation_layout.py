"""From observations of any gymnasium space to the arrays of an `Observation`: vectors of state, and images."""

from __future__ import annotations

import fnmatch
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from PIL import Image

from robot_rl.data.schema import IMAGE_PREFIX, STATE_PREFIX, Observation
from robot_rl.errors import EnvironmentFailedError, SpecError, UnknownNameError
from robot_rl.spec import ArraySpec, validate_dict

WHOLE = "observation"
"""Name of an observation that is one array."""
RENDERED = "render"
"""Name of the camera that the environment itself draws with."""
MAX_ELEMENTS = 100_000
"""Most numbers of a vector; more are a picture in disguise."""
LARGEST_NUMBER = float(np.finfo(np.float32).max)
"""Largest number that is recorded."""
_LEAST_SIDE = 8
_CLEAR_SIDE = 32
"""Least height and width of what is a picture beyond doubt, however many channels it has."""
_LARGEST_BOUND = 1e4
_CHANNELS = (1, 3, 4)

Scaling = Literal["running", "bounds"]
logger = logging.getLogger(__name__)


class _Part(NamedTuple):
    """A leaf of the space.

    Attributes:
        path: Keys from the whole observation to it.
        spec: Of the array that it becomes.
        convert: From its value to that array.
    """

    path: tuple[Any, ...]
    spec: ArraySpec
    convert: Callable[[Any], np.ndarray]


class ObservationLayout:
    """Where each part of an observation goes.

    Numbers become float32 vectors `state/<name>`, choices one-hot vectors, and pictures (uint8, with channels first or
    last) `images/<name>`. Names of nested parts are joined by dots; a name that begins with `state/` or `images/`
    stays.

    Args:
        space: Of the observations.
        name: Of the environment, for messages.
        cameras: Pictures to observe; others are left out.
        image_size: Height and width to which pictures are resampled [px].
        scaling: How vectors are scaled for networks; see `EnvironmentConfig.scaling`.
        scales: Scale of a vector by its key, instead.
        hidden: Names, or patterns of names, of vectors that are not observed.
        draws: Whether the environment draws itself; that camera is called `render`, unless a picture of the space is.

    Attributes:
        specs: Specs of the observations.
        cameras: Names of all cameras that there are.

    Raises:
        SpecError: if a part is of a kind that is not supported, two would have one name, or nothing would be observed.
        UnknownNameError: if there is no camera of that name.
    """

    def __init__(
        self,
        space: gymnasium.Space[Any],
        name: str,
        *,
        cameras: Sequence[str] = (),
        image_size: tuple[int, int] = (128, 128),
        scaling: Scaling = "running",
        scales: Mapping[str, float | tuple[float, ...]] | None = None,
        hidden: Sequence[str] = (),
        draws: bool = False,
    ) -> None:
        self._name, self._size = name, image_size
        parts: dict[str, _Part] = {}
        disguised: dict[str, gymnasium.Space[Any]] = {}  # vectors that nobody has named so
        for path, leaf in _leaves(space):
            key, part = self._part(path, leaf, scaling)
            if key in parts:
                same = " and ".join("/".join(map(str, one)) for one in (parts[key].path, path))
                raise SpecError(f"{name}: two parts of its observation would be {key}: {same}; wrap it and rename one")
            parts[key] = part
            if key.startswith(STATE_PREFIX) and not str(path[0] if path else "").startswith(STATE_PREFIX):
                disguised[key] = leaf
        pictures = [key.removeprefix(IMAGE_PREFIX) for key in parts if key.startswith(IMAGE_PREFIX)]
        draws = draws and RENDERED not in pictures  # a picture of that name is what the environment means by it
        self.cameras = (*pictures, *((RENDERED,) if draws else ()))
        for camera in cameras:
            if camera not in self.cameras:
                raise UnknownNameError("camera", camera, self.cameras)
        self._drawn = draws and RENDERED in cameras
        parts = _without(parts, hidden, name)
        for key in parts:
            self._check_disguise(key, disguised.get(key))
        self._parts = {
            key: part
            for key, part in parts.items()
            if key.startswith(STATE_PREFIX) or key.removeprefix(IMAGE_PREFIX) in cameras
        }
        self.specs = {key: part.spec for key, part in self._parts.items()}
        for key, scale in (scales or {}).items():
            spec = self.specs[key]
            self.specs[key] = ArraySpec(spec.shape, spec.dtype, low=spec.low, high=spec.high, scale=scale)
        if self._drawn:
            self.specs[IMAGE_PREFIX + RENDERED] = self._image_spec()
        if not self.specs:
            if not self.cameras:
                raise SpecError(
                    f"{name}: its observation is {space}, of which nothing is observed; a policy needs some"
                )
            chosen = f"--obs pixels --set encoder.cameras='{list(self.cameras)}'"
            raise SpecError(f"{name}: no state is observed; learn from pixels, and choose the cameras ({chosen})")

    def arrays(self, observation: Any, frame: Callable[[], np.ndarray]) -> Observation:
        """Return the arrays of an observation.

        Args:
            observation: As the environment returned it.
            frame: Draws the scene; called if the camera `render` is observed.

        Raises:
            SpecError: if it does not fit the space, or has a NaN.
            EnvironmentFailedError: if what was drawn is no picture.
        """
        values: dict[str, object] = {}
        for key, part in self._parts.items():
            value = observation
            try:
                for step in part.path:
                    value = value[step]
                values[key] = part.convert(value)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise SpecError(f"{self._name}: the observation does not fit its space at {key}: {error}") from error
        if self._drawn:
            try:
                values[IMAGE_PREFIX + RENDERED] = self._resampled(frame())
            except ValueError as error:
                raise EnvironmentFailedError(f"{self._name}: it draws no picture: {error}") from error
        return validate_dict(self.specs, values, f"{self._name}: observation")

    def _part(self, path: tuple[Any, ...], leaf: gymnasium.Space[Any], scaling: Scaling) -> tuple[str, _Part]:
        """Return key and part of a leaf of the space.

        Raises:
            SpecError: if it is of a kind that is not supported.
        """
        name = ".".join(map(str, path)) or WHOLE
        picture = _is_picture(leaf) and not name.startswith(STATE_PREFIX)
        prefix = "" if name.startswith((STATE_PREFIX, IMAGE_PREFIX)) else IMAGE_PREFIX if picture else STATE_PREFIX
        key = prefix + name
        if picture:
            if {*key.split("/")} & {"", ".", ".."}:  # a store has a folder for each part of the name
                raise SpecError(f"{self._name}: a picture has the name {name!r}; wrap it and rename that one")
            return key, _Part(path, self._image_spec(), self._resampled)
        size, convert = _vector_of(leaf)
        if not 0 < size <= MAX_ELEMENTS:
            raise SpecError(
                f"{self._name}: {key} is {leaf}; supported are boxes of 1 to {MAX_ELEMENTS} numbers, pictures (uint8, "
                "1, 3 or 4 channels), Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"
            )
        return key, _Part(path, ArraySpec((size,), scale=_scale_of(leaf, scaling)), convert)

    def _check_disguise(self, key: str, leaf: gymnasium.Space[Any] | None) -> None:
        """Say that a vector was made of what looks like a picture.

        Raises:
            SpecError: if it is one beyond doubt.
        """
        if not isinstance(leaf, spaces.Box) or len(leaf.shape) < 3:
            return
        side = sorted(leaf.shape)[-2]
        if side < _LEAST_SIDE:
            return
        looks = f"{self._name}: {key} is {leaf.dtype} of shape {leaf.shape}, which looks like a picture"
        if leaf.dtype != np.uint8:
            if side >= _CLEAR_SIDE and {leaf.shape[0], leaf.shape[-1]} & {*_CHANNELS}:
                cure = "a picture is uint8: wrap it, so that it returns such; or hide it (environment.hidden)"
                logger.warning("%s, and is observed as a vector; %s", looks, cure)
            return
        cure = (
            "a picture has 1, 3 or 4 channels: wrap it into pictures of such; if it is a vector, name it "
            f"{key} or make it float32; or hide it (environment.hidden)"
        )
        if side >= _CLEAR_SIDE:
            raise SpecError(f"{looks}; {cure}")
        logger.warning("%s and is observed as a vector; %s", looks, cure)

    def _image_spec(self) -> ArraySpec:
        return ArraySpec((*self._size, 3), "uint8", low=0, high=255)

    def _resampled(self, picture: Any) -> np.ndarray:
        """Return a picture as (height, width, 3), uint8, of the size observed."""
        pixels = np.asarray(picture)
        if pixels.ndim == 3 and pixels.shape[-1] not in _CHANNELS and pixels.shape[0] in _CHANNELS:
            pixels = pixels.transpose(1, 2, 0)
        if pixels.ndim == 2:
            pixels = pixels[..., None]
        if pixels.ndim != 3 or pixels.shape[-1] not in _CHANNELS or pixels.dtype != np.uint8 or not pixels.size:
            raise ValueError(f"a picture is {pixels.dtype} of shape {pixels.shape}, expected uint8, 1, 3 or 4 channels")
        pixels = np.repeat(pixels, 3, -1) if pixels.shape[-1] == 1 else pixels[..., :3]
        if pixels.shape[:2] != self._size:
            return _fitted(np.ascontiguousarray(pixels), self._size)
        return np.array(pixels, order="C")  # a copy, as of vectors


def _without(parts: Mapping[str, _Part], hidden: Sequence[str], name: str) -> dict[str, _Part]:
    """Return the parts without the vectors that are hidden.

    Raises:
        UnknownNameError: if a pattern fits none.
    """
    left = dict(parts)
    states = [key.removeprefix(STATE_PREFIX) for key in parts if key.startswith(STATE_PREFIX)]
    for pattern in hidden:
        fitting = fnmatch.filter(states, pattern)
        if not fitting:
            raise UnknownNameError(f"state entry of {name}", pattern, states)
        for state in fitting:
            left.pop(STATE_PREFIX + state, None)
    return left


def _fitted(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return a picture resampled to fit into a size, not stretched, black where it does not reach."""
    fits = min(size[0] / pixels.shape[0], size[1] / pixels.shape[1])
    height, width = (max(1, round(fits * side)) for side in pixels.shape[:2])
    smaller = Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX)
    framed = np.zeros((*size, 3), np.uint8)
    top, left = (size[0] - height) // 2, (size[1] - width) // 2
    framed[top : top + height, left : left + width] = np.asarray(smaller)
    return framed


def _leaves(space: gymnasium.Space[Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield path and space of each part that is no Dict or Tuple."""
    if isinstance(space, spaces.Dict):
        for key, part in space.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space):
            yield from _leaves(part, (*path, index))
    else:
        yield path, space


def _is_picture(space: gymnasium.Space[Any]) -> bool:
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return False
    sides = sorted(space.shape)[-2:]
    return sides[0] >= _LEAST_SIDE and (
        len(space.shape) == 2 or {space.shape[0], space.shape[-1]} & {*_CHANNELS} != set()
    )


def _vector_of(space: gymnasium.Space[Any]) -> tuple[int, Callable[[Any], np.ndarray]]:
    """Return length and conversion of what becomes a vector; length 0 for a kind that is not supported."""
    if isinstance(space, spaces.Box | spaces.MultiBinary) and np.dtype(space.dtype).kind in "biuf":
        shape = space.shape
        return math.prod(shape), lambda value: _of_shape(value, shape)
    if isinstance(space, spaces.Discrete):
        return int(space.n), _one_hot(np.array([space.n]), np.array([space.start]))
    if isinstance(space, spaces.MultiDiscrete):
        counts = np.asarray(space.nvec).ravel()
        return int(counts.sum()), _one_hot(counts, np.asarray(space.start).ravel())
    return 0, np.asarray


def _of_shape(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    with np.errstate(over="ignore"):
        array = np.array(value, np.float32)  # a copy: the environment may write its next observation into the array
    if array.shape != shape:
        raise ValueError(f"its shape is {array.shape}, the space declares {shape}")
    if np.isinf(array).any() and np.isfinite(largest := float(np.abs(value).max())):
        raise ValueError(f"it has numbers of size {largest:g}; recorded are those up to {LARGEST_NUMBER:.0e}")
    return array.ravel()


def _one_hot(counts: np.ndarray, start: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Return the conversion of choices, `counts` of each from `start` on, to one-hot vectors side by side."""
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))

    def convert(value: Any) -> np.ndarray:
        chosen = np.atleast_1d(np.asarray(value)).ravel() - start
        if chosen.shape != counts.shape or (chosen < 0).any() or (chosen >= counts).any():
            raise ValueError(f"the choice {value} is outside its space")
        row = np.zeros(int(counts.sum()), np.float32)
        row[first + chosen] = 1.0
        return row

    return convert


def _scale_of(space: gymnasium.Space[Any], scaling: Scaling) -> float | tuple[float, ...] | None:
    """Return the scale of a vector; None if it is found from what is seen."""
    if not isinstance(space, spaces.Box):
        return 1.0
    if scaling == "running":
        return None
    reach = np.maximum(np.abs(space.low), np.abs(space.high)).astype(float).ravel()
    usable = np.isfinite(reach) & (reach > 0) & (reach < _LARGEST_BOUND)
    return tuple(np.where(usable, reach, 1.0).tolist()) if usable.any() else None
