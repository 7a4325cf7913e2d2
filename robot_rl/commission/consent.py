"""A person's consent to each motion, at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

from robot_rl.errors import ConfigError
from robot_rl.system.prompt import read_line


def consents(
    announcement: str,
    read: Callable[[str], str] = read_line,
    show: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> bool:
    """Show what is going to happen, and return whether the person answers `y`; everything else is no consent.

    Raises:
        ConfigError: if the input has ended: nobody is there.
    """
    show(f"\nnext: {announcement}")
    try:
        return read("go? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        raise ConfigError("the input has ended: a person has to consent to each motion, at a terminal") from None
