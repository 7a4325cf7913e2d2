"""Defaults that differ with `observations=pixels`, applied when a configuration object is made.

Updates cost ten times as much there, and frames take memory. The fields are marked `WithPixels`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs

from robot_rl.config.field_types import STRICT, WithPixels, annotations_of, mark_of, section_type


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


def with_pixel_defaults(config_type: type, value: ArgsKwargs) -> ArgsKwargs:
    """Return the arguments of a configuration, completed by the defaults for pixels if it observes pixels."""
    given = _arguments(config_type, value)
    if given.get("observations") != "pixels" or len(value.args) > len(dataclasses.fields(config_type)):
        return value
    for name, annotation in annotations_of(config_type).items():
        section = section_type(annotation)
        if mark := mark_of(annotation, WithPixels):
            given.setdefault(name, mark.default)
        elif section is not None and (defaults := _pixel_defaults(section)):
            before = given.get(name, section())
            if isinstance(before, Section):
                known: frozenset[str] = getattr(before, "_given", frozenset())
                changes = {key: default for key, default in defaults.items() if key not in known}
                given[name] = dataclasses.replace(before, **changes) if changes else before
    return ArgsKwargs((), given)


def _pixel_defaults(section: type) -> dict[str, Any]:
    marks = {name: mark_of(annotation, WithPixels) for name, annotation in annotations_of(section).items()}
    return {name: mark.default for name, mark in marks.items() if mark is not None}


def _arguments(config_type: type, value: ArgsKwargs) -> dict[str, Any]:
    """Return the arguments by field name, also those that were given by position."""
    names = [field.name for field in dataclasses.fields(config_type)]
    return {**dict(zip(names, value.args, strict=False)), **(value.kwargs or {})}
