"""Paths that a data set of others names: filled in without evaluating them, and kept below the data set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from robot_rl.errors import DataError

_FIELD = re.compile(r"\{(?P<name>\w+)(?::0(?P<width>\d)d)?\}")


def filled(template: object, place: Mapping[str, int | str], where: str) -> str:
    """Return a template of the data set with its fields filled in: `{name}`, or `{name:03d}` for a number.

    Args:
        template: As the data set has it.
        place: Values of the fields that it may name.
        where: What names the template, for messages.

    Raises:
        DataError: if it is no text, or has any other field or format.
    """
    if not isinstance(template, str):
        raise DataError(f"{where} is {template!r}, must be a text such as 'data/file-{{file_index:03d}}.parquet'")

    def value(match: re.Match[str]) -> str:
        name, width = match["name"], match["width"]
        if name not in place or (width and not isinstance(place[name], int)):
            raise DataError(f"{where}: {template!r} names {name!r}; valid: {', '.join(place)}")
        return str(place[name]).zfill(int(width or 0))

    if "{" in (rest := _FIELD.sub("", template)) or "}" in rest:
        raise DataError(f"{where}: {template!r} has a field that is no {{name}} and no {{name:03d}}")
    return _FIELD.sub(value, template)


def below(root: Path, name: object, where: str) -> Path:
    """Return the path of a file below a directory.

    Args:
        root: The directory of the data set.
        name: Of the file, as the data set has it.
        where: What names it, for messages.

    Raises:
        DataError: if it leads out of the directory, also through a link, or is no regular file.
    """
    if not isinstance(name, str) or "\0" in name:
        raise DataError(f"{where} is {name!r}, must be the path of a file")
    try:
        path = (root / name).resolve()
    except (OSError, RuntimeError) as error:  # links in a circle, as Python 3.11 and 3.13 tell it
        raise DataError(f"{where}: {name!r} cannot be followed: {error}") from error
    if not path.is_relative_to(root.resolve()):
        raise DataError(f"{where}: {name!r} leads out of the data set")
    if not path.is_file():
        raise DataError(f"{where}: {path} is missing, or no regular file")
    return path
