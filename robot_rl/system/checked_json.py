"""JSON that may come from anybody: malformed or deeply nested text is a `ValueError`, never a full stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robot_rl.system.regular_file import read_regular

MAX_DEPTH = 100
"""Levels of nesting; what robot_rl writes has fewer than ten."""


def parse_json(content: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: if it is malformed or nested too deeply.
    """
    too_deep = f"is JSON nested deeper than {MAX_DEPTH} levels"
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError(too_deep) from error
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return value
    raise ValueError(too_deep)


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a regular file holds.

    Raises:
        OSError: if it cannot be read, or is no regular file.
        ValueError: if it is malformed or nested too deeply, or something other than an object.
    """
    value = parse_json(read_regular(path))
    if not isinstance(value, dict):
        raise ValueError("is no JSON object")
    return value


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file with a line of JSON for each; what a kill or a full disk left of one is left out.

    A text in a row may have characters at which `str.splitlines` would cut it.

    Raises:
        OSError: if it cannot be read.
    """
    rows = []
    for line in path.read_bytes().split(b"\n"):
        try:
            row = parse_json(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _parts(value: Any) -> list[Any]:
    """Return the lists and mappings in a list or a mapping."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict | list)]
