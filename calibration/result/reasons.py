"""Reasons why parts of a recording were left out, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_NAMED = 5
"""Largest number of names in a list of what was left out for the same reason."""


def reasons(rejected: Mapping[str, str]) -> list[str]:
    """Return a line for each reason, with the names of what was left out for it.

    Reasons that differ in their figures only are one; the figures are those of the first name.
    """
    names: dict[str, list[str]] = {}
    for name, reason in rejected.items():
        names.setdefault(re.sub(r"\d+(\.\d+)?", "#", reason), []).append(name)
    return [
        f"{first}{f' and {len(others)} more ({_listed(others)})' if others else ''}: {rejected[first]}"
        for first, *others in names.values()
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
