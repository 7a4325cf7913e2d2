"""A latched stop that outlives the process that holds it: a file with its reason, from the latch to the release.

It knows a file and a reason, not what latches or who releases. Without it a process that dies after a latch, and is
started again, would let the arm go on though no person has consented.
"""

from __future__ import annotations

from pathlib import Path

from robot_rl.system.atomic_file import write_atomically, writing


class LatchFile:
    """Keeps why a stop is latched.

    Args:
        file: Where; its folder exists. None keeps nothing.
    """

    def __init__(self, file: Path | None) -> None:
        self._file, self._kept = file, self._read(file)

    @property
    def reason(self) -> str | None:
        """Why a stop was latched by whoever wrote the file last and has not been released; None if none was."""
        return self._kept

    def follow(self, reason: str | None) -> None:
        """Keep what is latched now; None: nothing is. Writes where that has changed, and then once.

        Raises:
            RunDirectoryError: if the file cannot be written.
        """
        if reason == self._kept:
            return
        self._kept = reason
        if self._file is None:
            return
        if reason is None:
            with writing(self._file):
                self._file.unlink(missing_ok=True)
        else:
            write_atomically(self._file, reason)

    @staticmethod
    def _read(file: Path | None) -> str | None:
        if file is None or not file.exists():
            return None
        return file.read_text(encoding="utf-8", errors="replace")
