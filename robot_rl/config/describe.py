"""What can be set, read from the dataclasses themselves: key, type, default, and the docstring below each field."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from robot_rl.config.components import TrainConfig

_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


@dataclass(frozen=True)
class KeyDescription:
    """One thing that can be set.

    Attributes:
        key: Dotted key, e.g. `sac.discount`.
        type: What it may be, in words, e.g. `float > 0 and < 1`.
        default: Value if it is not set.
        doc: What it means, from the docstring below the field.
    """

    key: str
    type: str
    default: Any
    doc: str


def list_keys(config_type: type = TrainConfig) -> list[KeyDescription]:
    """Every key that can be set, in the order in which it is declared."""
    return list(_walk(config_type, ""))


def field_types(config_type: type) -> dict[str, Any]:
    """Annotations of a configuration dataclass by field name, with their constraints."""
    hints = get_type_hints(config_type, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(config_type)}


def describe_type(annotation: Any) -> str:
    """A type in words: `int >= 1`, `'cpu' or 'cuda'`, `list of int >= 0`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        bounds = [f"{sign} {value}" for sign, value in _bounds(arguments[1:])]
        return " ".join([describe_type(arguments[0]), " and ".join(bounds)]).strip()
    if origin is Literal:
        return " or ".join(repr(choice) for choice in arguments)
    if origin is tuple:
        items = arguments[:1] if arguments[-1:] == (Ellipsis,) else arguments
        return "list of " + ", ".join(describe_type(item) for item in items)
    if origin in (Union, types.UnionType):
        return " or ".join("null" if item is type(None) else describe_type(item) for item in arguments)
    return getattr(annotation, "__name__", str(annotation))


def _bounds(metadata: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for entry in metadata:
        for constraint in entry.metadata if isinstance(entry, FieldInfo) else (entry,):
            for name, sign in _BOUNDS.items():
                if hasattr(constraint, name):
                    yield sign, getattr(constraint, name)


def _walk(config_type: type, prefix: str) -> Iterator[KeyDescription]:
    docs, hints, defaults = _field_docs(config_type), field_types(config_type), config_type()
    for name, annotation in hints.items():
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            yield from _walk(annotation, f"{prefix}{name}.")
        else:
            yield KeyDescription(
                f"{prefix}{name}", describe_type(annotation), getattr(defaults, name), docs.get(name, "")
            )


def _field_docs(config_type: type) -> dict[str, str]:
    """The string that stands below each field; empty where the source is not at hand."""
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
