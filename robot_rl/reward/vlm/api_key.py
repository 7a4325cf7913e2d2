"""The key for a model server: where it comes from, and how it is kept out of all that is stored or printed."""

from __future__ import annotations

import os
import re

from robot_rl.errors import EndpointError

SHORTEST_SECRET = 8
"""Shorter keys (`EMPTY`, `ollama`) are stand-ins for none; they stay in replies, in which they are common text."""
PLACEHOLDER = "(key)"
_MOST_BACKSLASHES = 8  # before an escaped character: JSON in JSON in JSON


class ApiKey:
    """The key in an environment variable; it may be unset.

    Args:
        variable: Name of the variable.

    Raises:
        EndpointError: if the value cannot be sent.
    """

    def __init__(self, variable: str) -> None:
        key = os.environ.get(variable, "").strip()
        if not (key.isascii() and key.isprintable()) or "\\" in key:
            raise EndpointError(
                f"the key in the environment variable {variable} cannot be sent: it holds a backslash, or characters "
                "other than printable ASCII; set it again, without line breaks"
            )
        self._key = key
        self._pattern = re.compile(b"".join(map(_spellings, key)))

    def __bool__(self) -> bool:
        """Return whether there is a key."""
        return bool(self._key)

    def headers(self) -> dict[str, str]:
        """Return the headers that send it."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def hide(self, message: str) -> str:
        """Return a message without the key."""
        return message.replace(self._key, PLACEHOLDER) if self._key else message

    def hide_in_reply(self, body: bytes) -> bytes:
        """Return the body of a reply without the key, also where JSON escapes spell it."""
        return self._pattern.sub(PLACEHOLDER.encode(), body) if len(self._key) >= SHORTEST_SECRET else body


def _spellings(character: str) -> bytes:
    """Return a pattern of all that stands for an ASCII character in JSON, and in JSON within it."""
    plain, code = re.escape(character.encode()), f"u{ord(character):04x}".encode()
    return rb"(?:\\{0,%d}%s|\\{1,%d}(?i:%s))" % (_MOST_BACKSLASHES, plain, _MOST_BACKSLASHES, code)
