"""What a person asks of a session, kept from the moment of asking until the control loop takes it."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue

from robot_rl.errors import UnknownNameError

REQUESTS = ("start", "stop", "discard", "redo", "success", "failure", "finish")
"""All that can be asked for; which of them fit depends on the moment."""


class Requests:
    """Requests in the order in which they were made. Any thread may ask; the control loop takes.

    Args:
        remark: Told, in the control loop, of each request that does not fit the moment.
    """

    def __init__(self, remark: Callable[[str], object]) -> None:
        self._remark = remark
        self._waiting: SimpleQueue[str] = SimpleQueue()

    def __bool__(self) -> bool:
        """Whether any waits to be taken."""
        return not self._waiting.empty()

    def ask(self, name: str) -> None:
        """Asks for one of `REQUESTS`.

        Raises:
            UnknownNameError: if there is no such request.
        """
        if name not in REQUESTS:
            raise UnknownNameError("request", name, REQUESTS)
        self._waiting.put(name)

    def take(self, possible: tuple[str, ...]) -> str | None:
        """The next request that fits the moment, or None; one that does not is dropped, and that is said."""
        try:
            while (name := self._waiting.get_nowait()) not in possible:
                self._remark(f"cannot {name} now; possible: {', '.join(possible)}")
        except Empty:
            return None
        return name
