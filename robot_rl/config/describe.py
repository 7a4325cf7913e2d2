"""Descriptions of settings, read from the dataclasses themselves: key, type, default, marks, and text."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from robot_rl.config.components import TrainConfig
from robot_rl.config.field_types import (
    CONDITIONS,
    Forkable,
    Resumable,
    annotations_of,
    mark_of,
    section_type,
)

_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


@dataclass(frozen=True)
class KeyDescription:
    """One setting.

    Attributes:
        key: Dotted key, e.g. `sac.discount`.
        type: Its valid values, e.g. `float > 0 and < 1`.
        default: Value if it is not set.
        doc: Its meaning, from the docstring below the field.
        notes: Its marks: other defaults under a condition, and whether a resumed run may change it.
    """

    key: str
    type: str
    default: Any
    doc: str
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the description for a terminal."""
        marks = f" [{'; '.join(self.notes)}]" if self.notes else ""
        return f"{self.key} = {as_typed(self.default)}  ({self.type}){marks}\n    {self.doc}"

    def row(self) -> dict[str, Any]:
        """Return the description as plain values."""
        return {"key": self.key, "type": self.type, "default": self.default, "help": self.doc, "notes": [*self.notes]}


def list_keys(config_type: type = TrainConfig) -> list[KeyDescription]:
    """Return every setting, in the order in which it is declared."""
    return list(_walk(config_type, "", None, False))


def key_names(config_type: type) -> list[str]:
    """Return the names of the settings that `list_keys` describes, for a fraction of its time."""
    names: list[str] = []
    for name, annotation in annotations_of(config_type).items():
        section = section_type(annotation)
        names += [name] if section is None else [f"{name}.{key}" for key in key_names(section)]
    return names


def as_typed(value: Any) -> str:
    """Return a value as it is typed after `--set KEY=` or in a YAML file."""
    if isinstance(value, dict):  # a schedule, whose steps are numbers; JSON would make them strings
        return "{" + ", ".join(f"{step}: {json.dumps(entry)}" for step, entry in value.items()) + "}"
    return value if isinstance(value, str) and value else json.dumps(value)


def describe_type(annotation: Any) -> str:
    """Describe a type: `int >= 1`, `'cpu' or 'cuda'`, `list of int >= 0`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = [f"{sign} {value}" for sign, value in _bounds(arguments[1:])]
        return " ".join([describe_type(arguments[0]), " and ".join(bounds)]).strip()
    if origin is Literal:
        return " or ".join(repr(choice) for choice in arguments)
    if origin is tuple:
        items = arguments[:1] if arguments[-1:] == (Ellipsis,) else arguments
        return "list of " + ", ".join(describe_type(item) for item in items)
    if origin is dict:
        return f"{{env step: {describe_type(arguments[1])}}}"
    if origin in (Union, types.UnionType):
        return " or ".join("null" if item is type(None) else describe_type(item) for item in arguments)
    return getattr(annotation, "__name__", str(annotation))


def _bounds(metadata: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for entry in metadata:
        for constraint in entry.metadata if isinstance(entry, FieldInfo) else (entry,):
            for name, sign in _BOUNDS.items():
                if getattr(constraint, name, None) is not None:
                    yield sign, getattr(constraint, name)


def _walk(config_type: type, prefix: str, resumable: Resumable | None, forkable: bool) -> Iterator[KeyDescription]:
    """Describe the settings of a section; `resumable` is the mark of the section itself, so is `forkable`."""
    docs = {name: text for base in reversed(config_type.__mro__) for name, text in _field_docs(base).items()}
    annotations, defaults = annotations_of(config_type), config_type()
    for name, annotation in annotations.items():
        mark, key = mark_of(annotation, Resumable) or resumable, f"{prefix}{name}"
        fork = forkable or mark_of(annotation, Forkable) is not None
        if (section := section_type(annotation)) is not None:
            yield from _walk(section, f"{key}.", mark, fork)
            continue
        notes: list[str] = []
        others = (mark_of(annotation, kind) for kind in CONDITIONS)
        notes += [f"{other.condition}: {as_typed(other.default)}" for other in others if other is not None]
        if mark is not None:
            notes.append(f"a resumed run may change it {mark.note}".rstrip())
        elif fork:
            notes.append("a fork may change it")
        default = getattr(defaults, name)
        yield KeyDescription(key, describe_type(annotation), default, docs.get(name, ""), tuple(notes))


@functools.cache
def _field_docs(config_type: type) -> dict[str, str]:
    """Return the text below each field; empty where the source is not available."""
    if not dataclasses.is_dataclass(config_type):
        return {}
    try:
        source = textwrap.dedent(inspect.getsource(config_type))
    except OSError:
        return {}
    body = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)).body
    docs = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value) if isinstance(below.value, ast.Constant) else ""
            docs[field.target.id] = " ".join(str(text).split())
    return docs
