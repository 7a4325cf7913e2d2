"""Specifications of arrays: shape, dtype, unit, bounds, and the scale that makes it of order one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_rl.errors import SpecError

if TYPE_CHECKING:
    import gymnasium  # takes a tenth of the start of a node, which makes no spaces


@dataclass(frozen=True)
class ArraySpec:
    """One array of an observation or action.

    Attributes:
        shape: Shape of the array.
        dtype: Name of its numpy dtype.
        unit: SI unit of the values, for people and reports.
        low: Smallest value allowed.
        high: Largest value allowed.
        scale: Typical magnitude per element, or one for all; networks see `value / scale`. The stored value stays SI.
            None: not known; networks see values standardised by mean and deviation of all that was seen.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    unit: str = ""
    low: float = -np.inf
    high: float = np.inf
    scale: float | tuple[float, ...] | None = 1.0

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @cached_property
    def _numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)

    @cached_property
    def _bounded(self) -> bool:
        """True if a finite value of this dtype can leave the bounds at all."""
        if self._numpy_dtype.kind == "f":
            return self.low > -np.inf or self.high < np.inf
        limits = np.iinfo(self._numpy_dtype)
        return self.low > limits.min or self.high < limits.max

    def validate(self, value: object, name: str) -> np.ndarray:
        """Return `value` as an array of this spec.

        Raises:
            SpecError: if shape, dtype kind, finiteness or bounds do not fit.
        """
        array = np.asarray(value)
        if array.shape != self.shape:
            raise SpecError(f"{name}: shape {array.shape}, expected {self.shape}")
        dtype = self._numpy_dtype
        if array.dtype != dtype:
            if not np.can_cast(array.dtype, dtype, casting="same_kind"):
                raise SpecError(f"{name}: dtype {array.dtype} cannot become {dtype} without loss of kind")
            array = array.astype(dtype)
        if dtype.kind == "f" and not np.isfinite(array).all():
            raise SpecError(f"{name}: has a NaN or an infinity: {array.tolist()}")
        if self._bounded and array.size and (array.min() < self.low or array.max() > self.high):
            found, allowed = f"[{array.min():.4g}, {array.max():.4g}]", f"[{self.low:.4g}, {self.high:.4g}]"
            raise SpecError(f"{name}: values in {found}, allowed {allowed} {self.unit}".rstrip())
        return array

    def to_space(self) -> gymnasium.spaces.Box:
        """Return the gymnasium space of this spec."""
        import gymnasium

        return gymnasium.spaces.Box(self.low, self.high, self.shape, np.dtype(self.dtype).type)


DictSpec = Mapping[str, ArraySpec]
"""Named arrays. State vectors are called `state/<what>`, images `images/<camera>`."""


def validate_dict(specs: DictSpec, values: Mapping[str, object], what: str) -> dict[str, np.ndarray]:
    """Validate every entry.

    Raises:
        SpecError: if a key is missing or unknown, or an entry does not fit its spec.
    """
    if specs.keys() != values.keys():
        missing, unknown = sorted(specs.keys() - values.keys()), sorted(values.keys() - specs.keys())
        raise SpecError(f"{what}: missing {missing}, unknown {unknown}; expected {sorted(specs)}")
    return {key: spec.validate(values[key], f"{what}[{key}]") for key, spec in specs.items()}


def to_space(specs: DictSpec) -> gymnasium.spaces.Dict:
    """Return the gymnasium space of a dict of specs, keys sorted."""
    import gymnasium

    return gymnasium.spaces.Dict({key: specs[key].to_space() for key in sorted(specs)})
