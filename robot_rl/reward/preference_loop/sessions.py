"""The pairs of each session of queries, on disk before the first of them is queried.

A process that was killed goes on with the same pairs, although the ensemble that chose them is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from robot_rl.errors import DataError
from robot_rl.reward.labels.units import Pair
from robot_rl.system.atomic_file import to_json, write_atomically
from robot_rl.system.checked_json import parse_json


class Sessions:
    """The pairs of the sessions of one labeller.

    Args:
        path: Their file.

    Raises:
        DataError: if it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pairs: dict[int, list[Pair]] = {}
        self._marks: dict[int, dict[str, str]] = {}
        if not path.exists():
            return
        try:
            for entry in parse_json(path.read_text(encoding="utf-8")):
                self._pairs[int(entry["session"])] = [_pair(pair) for pair in entry["pairs"]]
                self._marks[int(entry["session"])] = {str(k): str(v) for k, v in entry["fingerprints"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: damaged ({error}); move it away to choose pairs anew") from error

    def numbers(self, most: int) -> list[int]:
        """Return the numbers of the sessions up to `most`, ascending."""
        return sorted(number for number in self._pairs if number <= most)

    def pairs(self, number: int) -> list[Pair]:
        """Return the pairs of a session."""
        return self._pairs[number]

    def drop_outdated(self, fingerprint: Callable[[str], str | None]) -> None:
        """Forget the first session about a recording that is not there any more, and those after it.

        Args:
            fingerprint: Of the episode of an id; None if there is none.
        """
        for number in self.numbers(max(self._pairs, default=0)):
            if any(fingerprint(name) != mark for name, mark in self._marks[number].items()):
                self._forget_from(number)
                return

    def write(self, number: int, pairs: Sequence[Pair], fingerprint: Callable[[str], str | None]) -> None:
        """Write the pairs of a session to disk; later sessions are forgotten.

        Raises:
            RunDirectoryError: if they cannot be written.
        """
        self._forget_from(number)
        self._pairs[number] = list(pairs)
        names = sorted({name for pair in pairs for name, _ in pair})
        self._marks[number] = {name: str(fingerprint(name)) for name in names}
        entries = [
            {"session": n, "pairs": self._pairs[n], "fingerprints": self._marks[n]} for n in self.numbers(number)
        ]
        write_atomically(self._path, to_json(entries))

    def _forget_from(self, number: int) -> None:
        for later in [n for n in self._pairs if n >= number]:
            del self._pairs[later], self._marks[later]


def _pair(tree: Sequence[Sequence[object]]) -> Pair:
    first, second = ((str(name), tuple(map(int, rows))) for name, rows in tree)  # type: ignore[call-overload]
    return first, second
