"""Text of unknown origin, so that it can be printed and stored: a terminal obeys control characters."""

from __future__ import annotations

import json
from collections.abc import Sequence

LONGEST = 300
"""Characters that are kept."""
LONGEST_ERROR = 3000
"""Characters of an error that are printed."""


def printable(text: str) -> str:
    """Return the text with its lines, and escapes for control characters, marks of direction and lone surrogates."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def printable_error(text: str) -> str:
    """Return what `printable` does, cut short: an error may quote a name of any length."""
    shown = printable(text)
    return shown if len(shown) <= LONGEST_ERROR else f"{shown[:LONGEST_ERROR]}..."


def printable_json(text: str) -> str:
    """Return a JSON text of the same value in which all that `printable` escapes is an escape of JSON."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def some(texts: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """Return the first texts, at most so many, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def one_line(text: str) -> str:
    """Return the text on one line, cut short; control characters and lone surrogates are written as escapes."""
    line = " ".join(text[: 4 * LONGEST].split())
    line = printable(line)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
