"""Questions to a person at a terminal, in plain lines: no arrows, no colours; every answer can be a flag instead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from robot_rl.errors import ConfigError
from robot_rl.system.prompt import read_line

Check = Callable[[str], str]
"""From an answer to the answer that is kept; raises `ConfigError` with the reason if it is none."""


class Questions:
    """Collects answers.

    Args:
        given: Answers of flags, by the name of the flag; they are not asked for.
        interactive: Whether somebody is there to answer; else defaults are taken.
        read: Reads a line after a prompt.
        show: Shows a line.
    """

    def __init__(
        self,
        given: dict[str, str | None],
        *,
        interactive: bool,
        read: Callable[[str], str] = read_line,
        show: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    ) -> None:
        self._given, self._interactive, self._read, self._show = given, interactive, read, show

    def choose(self, flag: str, question: str, options: Sequence[tuple[str, str]], default: str | None = None) -> str:
        """Return one of some options, by its name or number.

        Args:
            flag: Of the command line, e.g. `--arm`.
            question: For people.
            options: Names, each with a remark.
            default: What an empty answer means; None: an answer is needed.

        Raises:
            ConfigError: if a flag names none of them, or nobody is there to answer.
        """
        names = [name for name, _ in options]

        def check(answer: str) -> str:
            if answer.isdecimal() and 1 <= int(answer) <= len(names):
                return names[int(answer) - 1]
            if answer in names:
                return answer
            raise ConfigError(f"{answer!r} is none of: {', '.join(names)}")

        if self._interactive and flag not in self._answered():
            for number, (name, remark) in enumerate(options, 1):
                self._show(f"  {number}  {name}{f'  ({remark})' if remark else ''}")
        return self.ask(flag, question, default, check)

    def ask(self, flag: str, question: str, default: str | None, check: Check = lambda answer: answer) -> str:
        """Return the answer to a question; a wrong one is explained, and the question put again.

        Raises:
            ConfigError: if a flag's value is wrong, or there is no default and nobody is there to answer.
        """
        if flag in self._answered():
            try:
                return check(str(self._given[flag]))
            except ConfigError as error:
                raise ConfigError(f"{flag}: {error}") from error
        if not self._interactive:
            if default is None:
                raise ConfigError(f"{flag} is needed where nobody can answer: {question}")
            return check(default)
        while True:
            try:
                answer = self._read(f"{question}{f' [{default}]' if default else ''}: ").strip()
            except EOFError:
                raise ConfigError(f"the input ended before the answer to {flag}: {question}") from None
            if not answer and default is None:
                self._show("  an answer is needed")
                continue
            try:
                return check(answer or str(default))
            except ConfigError as error:
                self._show(f"  {error}")

    def _answered(self) -> set[str]:
        return {flag for flag, value in self._given.items() if value is not None}
