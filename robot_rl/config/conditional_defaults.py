"""Defaults that differ with pixels, in environments of others, with a base, its noise, chunks and other algorithms.

They are applied when a configuration is made.

With pixels updates cost ten times as much, and frames take memory. In an environment of others nobody demonstrates, and
episodes are long. A base explores from the first step. A chunk is itself the window whose rewards are summed. Only
SAC by itself imitates. The fields are marked `WithPixels`, `WithGuest`, `WithBase`, `WithNoise`, `WithChunk` and
`UnlessPlain`; where several apply, the last of them holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs

from robot_rl.config import FAMILY_MARK
from robot_rl.config.field_types import (
    STRICT,
    OtherDefault,
    UnlessPlain,
    WithBase,
    WithChunk,
    WithGuest,
    WithNoise,
    WithPixels,
    annotations_of,
    mark_of,
    section_type,
)


@dataclass(frozen=True, config=STRICT)
class Section:
    """A section of settings that knows which of them were given, and which are defaults."""

    @model_validator(mode="wrap")
    @classmethod
    def _note_given(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(value)
        if isinstance(value, ArgsKwargs):
            object.__setattr__(made, "_given", frozenset(_arguments(cls, value)))
        return made


def with_conditional_defaults(config_type: type, value: ArgsKwargs) -> ArgsKwargs:
    """Return the arguments of a configuration, completed by the defaults under the conditions that they fulfil."""
    given = _arguments(config_type, value)
    kinds: list[type[OtherDefault]] = []
    algorithm, base = given.get("algorithm"), given.get("base")
    based = getattr(base, "kind", "none") != "none"
    steered = based and getattr(base, "correction", "") == "noise"
    if getattr(algorithm, "chunk", 1) > 1 or (steered and "chunk" not in getattr(algorithm, "_given", ())):
        kinds.append(WithChunk)
    if based or kinds or getattr(algorithm, "name", "sac") != "sac":
        kinds.append(UnlessPlain)
    if steered:
        kinds.append(WithNoise)
    if based:
        kinds.append(WithBase)
    if FAMILY_MARK in str(given.get("task", "")):
        kinds.append(WithGuest)
    if given.get("observations") == "pixels":
        kinds.append(WithPixels)
    if not kinds or len(value.args) > len(dataclasses.fields(config_type)):
        return value
    for name, annotation in annotations_of(config_type).items():
        section = section_type(annotation)
        if mark := _first_mark(annotation, kinds):
            given.setdefault(name, mark.default)
        elif section is not None and (defaults := _defaults(section, kinds)):
            before = given.get(name, section())
            if isinstance(before, Section):
                known: frozenset[str] = getattr(before, "_given", frozenset())
                changes = {key: default for key, default in defaults.items() if key not in known}
                given[name] = dataclasses.replace(before, **changes) if changes else before
    return ArgsKwargs((), given)


def _defaults(section: type, kinds: Sequence[type[OtherDefault]]) -> dict[str, Any]:
    marks = {name: _first_mark(annotation, kinds) for name, annotation in annotations_of(section).items()}
    return {name: mark.default for name, mark in marks.items() if mark is not None}


def _first_mark(annotation: Any, kinds: Sequence[type[OtherDefault]]) -> OtherDefault | None:
    return next((mark for kind in kinds if (mark := mark_of(annotation, kind)) is not None), None)


def _arguments(config_type: type, value: ArgsKwargs) -> dict[str, Any]:
    """Return the arguments by field name, also those that were given by position."""
    names = [field.name for field in dataclasses.fields(config_type)]
    return {**dict(zip(names, value.args, strict=False)), **(value.kwargs or {})}
