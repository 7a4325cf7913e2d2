"""Types of settings, and marks on a field: whether a resumed run or a fork may change it, and other defaults.

A mark stands in the annotation of the field, e.g. `env_steps: Annotated[NonNegative, RESUMABLE, WithPixels(8_000)]`, so
that each fact about a setting is written once. `describe.py` shows marks, `resuming.py` and `conditional_defaults.py`
apply them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field

_T = TypeVar("_T")

Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
Real = Annotated[float, Field(allow_inf_nan=False)]
PositiveReal = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeReal = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
LARGEST_IMAGE = 4096
"""Largest height and width of frames [px]; what is larger is a slip, and would take gigabytes."""
Ages = Annotated[tuple[NonNegative, ...], Field(min_length=1)]
"""How many steps ago each of some observations was."""
AbsolutePath = Annotated[
    str, Field(min_length=1), AfterValidator(lambda path: os.path.abspath(os.path.expanduser(path)))
]
"""Path of a file, kept as an absolute one: a run finds it from wherever it is continued or evaluated."""

STRICT = ConfigDict(extra="forbid", strict=True, defer_build=True)
"""How pydantic checks every component. What checks it is built when the first is made: a program makes few of them."""


@dataclass(frozen=True)
class Resumable:
    """Mark of a setting, or of a whole section, that a resumed run may change.

    Attributes:
        note: Condition, for people; empty if there is none.
        applies: The condition itself: a function of the section before and after, e.g. of two `RewardConfig`.
    """

    note: str = ""
    applies: Callable[[Any, Any], bool] = lambda before, after: True


RESUMABLE = Resumable()


@dataclass(frozen=True)
class Forkable:
    """Mark of a setting, or of a whole section, that a fork of a run may change, besides what a resumed run may."""


FORKABLE = Forkable()


@dataclass(frozen=True)
class OtherDefault:
    """Mark of a setting whose default differs under a condition.

    Attributes:
        default: The default then.
    """

    condition: ClassVar[str]
    """For people."""
    default: object


class WithPixels(OtherDefault):
    """Mark of a setting whose default differs with `observations=pixels`."""

    condition = "with pixels"


class WithGuest(OtherDefault):
    """Mark of a setting whose default differs for an environment of others, e.g. `task=gym:Pendulum-v1`."""

    condition = "in an environment of others"


class WithBase(OtherDefault):
    """Mark of a setting whose default differs where a base is corrected, e.g. `base.kind=chunk`."""

    condition = "with a base"


class WithNoise(OtherDefault):
    """Mark of a setting whose default differs where the noise of a base is learned, `base.correction=noise`."""

    condition = "with learned noise"


class WithChunk(OtherDefault):
    """Mark of a setting whose default differs where a policy decides for several steps, e.g. `algorithm.chunk=5`."""

    condition = "with chunks"


class UnlessPlain(OtherDefault):
    """Mark of a setting whose default differs with a base, with chunks, or with another algorithm than `sac`."""

    condition = "with a base, chunks or another algorithm"


CONDITIONS: tuple[type[OtherDefault], ...] = (WithPixels, WithGuest, WithBase, WithNoise, WithChunk, UnlessPlain)
"""All of them, in the order in which people are told."""


def annotations_of(config_type: type) -> dict[str, Any]:
    """Return the annotations of a configuration dataclass by field name, with their constraints and marks."""
    hints = get_type_hints(config_type, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(config_type)}


def bare_type(annotation: Any) -> Any:
    """Return an annotation without its constraints and marks."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def section_type(annotation: Any) -> type | None:
    """Return the dataclass of a field that is a section of settings; None for a single setting."""
    bare = bare_type(annotation)
    return bare if isinstance(bare, type) and dataclasses.is_dataclass(bare) else None


def mark_of(annotation: Any, kind: type[_T]) -> _T | None:
    """Return the mark of that kind, or None without one."""
    return next((entry for entry in getattr(annotation, "__metadata__", ()) if isinstance(entry, kind)), None)
