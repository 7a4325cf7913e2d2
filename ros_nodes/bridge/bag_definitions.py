"""The definition of a message type as text, as bags carry it, from the type itself: no file has to be found.

Types nested in it follow, each behind a line of `=` and `MSG: package/Type`. Constants are left out; nothing that is
recorded depends on them.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from robot_rl.data.formats.rosbag_writer import MessageType
from robot_rl.errors import PluginError

_PRIMITIVES = {"boolean": "bool", "float": "float32", "double": "float64", "octet": "byte"}
"""IDL's names for what ROS calls otherwise."""


def load_type(name: str) -> type[Any]:
    """Return the Python type of messages called `package/msg/Type`.

    Raises:
        PluginError: if the package is not installed here.
    """
    package, _, kind = name.partition("/msg/")
    try:
        found: type[Any] = getattr(importlib.import_module(f"{package}.msg"), kind)
    except (ImportError, AttributeError) as error:
        raise PluginError(f"messages of type {name} are not known here; install the package {package}") from error
    return found


def message_type(name: str) -> MessageType:
    """Name and definition of a type called `package/msg/Type`.

    Raises:
        PluginError: if the package is not installed here.
    """
    texts: dict[str, str] = {}
    _describe(name.replace("/msg/", "/"), texts)
    first, *nested = texts.items()
    parts = [first[1], *(f"{'=' * 80}\nMSG: {kind}\n{text}" for kind, text in nested)]
    return MessageType(name, "".join(parts))


def _describe(kind: str, texts: dict[str, str]) -> None:
    """Add the definition of `package/Type`, and of what it needs, to `texts`."""
    package, _, short = kind.partition("/")
    fields = load_type(f"{package}/msg/{short}").get_fields_and_field_types()
    texts[kind] = ""
    lines = []
    for field, idl in fields.items():
        written, base = _written(idl)
        lines.append(f"{written} {field}\n")
        if "/" in base and base not in texts:
            _describe(base, texts)
    texts[kind] = "".join(lines)


def _written(idl: str) -> tuple[str, str]:
    """Return a field's type as `.msg` files write it, and the type of its elements."""
    if match := re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>", idl):
        written, base = _written(match[1])
        return f"{written}[{'<=' + match[2] if match[2] else ''}]", base
    if match := re.fullmatch(r"(.+)\[(\d+)\]", idl):
        written, base = _written(match[1])
        return f"{written}[{match[2]}]", base
    if match := re.fullmatch(r"(w?string)<(\d+)>", idl):
        return f"{match[1]}<={match[2]}", match[1]
    base = _PRIMITIVES.get(idl, idl)
    return base, base
