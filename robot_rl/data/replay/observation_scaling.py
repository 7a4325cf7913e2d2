"""From a dict of state arrays to one float32 row of order one, which is what replay stores and networks see.

What has no declared scale is stored as it is; networks see it standardised by the moments of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from robot_rl.data.schema import STATE_PREFIX
from robot_rl.errors import SpecError
from robot_rl.spec import ArraySpec, DictSpec


class ObservationPacker:
    """Concatenates the `state/*` arrays, keys sorted, each divided by the scale of its spec. Images are left out.

    Attributes:
        keys: The keys packed, in order.
        size: Elements of a packed row.
        unscaled: Its elements without a declared scale, as pairs of the first and the one behind the last.
    """

    def __init__(self, specs: DictSpec) -> None:
        self.keys = tuple(sorted(key for key in specs if key.startswith(STATE_PREFIX)))
        self._shapes = {key: specs[key].shape for key in self.keys}
        scales = [np.broadcast_to(np.asarray(_scale(specs[key]), np.float32), (specs[key].size,)) for key in self.keys]
        self._scale = np.concatenate(scales, dtype=np.float32) if scales else np.zeros(0, np.float32)
        self.size = len(self._scale)
        places = (self.slice_of(key) for key in self.keys if specs[key].scale is None)
        self.unscaled = tuple((place.start, place.stop) for place in places)

    def slice_of(self, key: str) -> slice:
        """Where the array under `key` is in a packed row; empty if it is not packed."""
        start = sum(math.prod(self._shapes[other]) for other in self.keys if other < key)
        return slice(start, start + math.prod(self._shapes.get(key, (0,))))

    def elements_of(self, name: str) -> tuple[int, ...]:
        """Which elements of a packed row have this name, e.g. `tcp_pose`, of the one arm or of all arms in turn."""
        keys = [key for key in self.keys if key.rpartition("/")[2] == name]
        return tuple(element for key in keys for element in range(*self.slice_of(key).indices(self.size)))

    def pack(self, observation: Mapping[str, np.ndarray]) -> np.ndarray:
        """One observation as a row, shape (size,), float32.

        Raises:
            SpecError: if a key is missing or has another shape than its spec.
        """
        row = np.empty(self.size, np.float32)
        start = 0
        for key, shape in self._shapes.items():
            value = self._get(observation, key)
            if value.shape != shape:
                raise SpecError(f"observation[{key}]: shape {value.shape}, expected {shape}")
            row[start : start + value.size] = value.ravel()
            start += value.size
        row /= self._scale
        return row

    def pack_rows(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """R observations, each array of shape (R, ...), as rows of shape (R, size), float32.

        Raises:
            SpecError: if a key is missing, has another shape than its spec, or another number of rows than the first.
        """
        columns = {key: self._get(observations, key) for key in self.keys}
        counted = columns or observations  # where only frames are observed, there are as many rows as of these
        rows = len(next(iter(counted.values()), ()))
        for key, value in columns.items():
            if value.shape != (rows, *self._shapes[key]):
                raise SpecError(f"observations[{key}]: shape {value.shape}, expected {(rows, *self._shapes[key])}")
        packed = np.empty((rows, self.size), np.float32)
        start = 0
        for value in columns.values():
            width = int(np.prod(value.shape[1:]))
            packed[:, start : start + width] = value.reshape(rows, width)
            start += width
        packed /= self._scale
        return packed

    def _get(self, observation: Mapping[str, np.ndarray], key: str) -> np.ndarray:
        """Return the array under `key`, or a SpecError that lists what is there."""
        if key not in observation:
            raise SpecError(f"observation: missing {key}; expected {list(self.keys)}, got {sorted(observation)}")
        return np.asarray(observation[key])


def _scale(spec: ArraySpec) -> float | tuple[float, ...]:
    return 1.0 if spec.scale is None else spec.scale
