"""The parser of every command: help with an example and where to read on, and a near name for what is misspelt."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def near(name: str, valid: Iterable[str]) -> str:
    """Return a hint at the valid name that is most like `name`; empty if none is."""
    found = difflib.get_close_matches(name, list(valid), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


class CommandParser(argparse.ArgumentParser):
    """The parser of `robot-rl`, a group of commands, or a command.

    Args:
        example: A call of the command.
        page: The page of the documentation about it, e.g. `docs/data.md`.
        parts: As for `argparse.ArgumentParser`.
    """

    def __init__(self, *, example: str = "", page: str = "", **parts: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **parts})
        self.example, self.page = example, page
        self.renamed = set[str]()
        """Old names of commands of this group; they are neither listed nor suggested."""

    @property
    def commands(self) -> dict[str, CommandParser]:
        """The parsers of the commands of a group by name; none for a command."""
        groups = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return {name: parser for group in groups for name, parser in group.choices.items() if name not in self.renamed}

    def arguments(self) -> list[argparse.Action]:
        """Return the options and positional arguments."""
        return [action for action in self._actions if not isinstance(action, argparse._SubParsersAction)]

    def format_help(self) -> str:
        """Return the help, with an example and the page to read on."""
        lines = [f"example: {self.example}"] if self.example else []
        lines += [f"read on: {self.page}"] if self.page else []
        return "\n".join([super().format_help(), *lines, ""]) if lines else super().format_help()

    def refuse_unknown(self, arguments: Sequence[str]) -> None:
        """Exit, since there are arguments that this command does not have."""
        options = [name for action in self._actions for name in action.option_strings]
        name = next((text.partition("=")[0] for text in arguments if text.startswith("-")), "")
        self.error(f"unknown argument {' '.join(arguments)}; the valid ones are above{near(name, options)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of the choices, as argparse does, with the near one."""
        if action.choices is None or value in action.choices:
            return
        valid = [str(choice) for choice in action.choices if choice not in self.renamed]
        listed = ", ".join(map(repr, valid))
        raise argparse.ArgumentError(
            action, f"invalid choice: {value!r} (choose from {listed}){near(str(value), valid)}"
        )
