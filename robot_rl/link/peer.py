"""The learner at the other end of the link, wherever it runs: what the actor's side needs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from robot_rl.errors import RobotRLError
from robot_rl.link.messages import Message


class LearnerPeer(Protocol):
    """Carries messages to a learner and back. Used by one thread, but for the callbacks."""

    def open(
        self,
        on_message: Callable[[Message], None],
        on_error: Callable[[RobotRLError], None],
        on_restart: Callable[[], None],
    ) -> None:
        """Starts to carry.

        Args:
            on_message: Given each message of the learner, in order, by another thread.
            on_error: Told why nothing is carried any more.
            on_restart: Told that the learner is a new one, which is being told again all that was posted.

        Raises:
            LinkError: if there cannot be a learner.
        """
        ...

    def post(self, message: Message) -> None:
        """Returns at once; the message will be sent.

        Raises:
            LinkError: if it may not cross, or too many wait already.
        """
        ...

    def restart_from(self, messages: Callable[[], Iterable[Message]]) -> None:
        """From now on, these messages and those posted after them are what a new learner has to be told."""
        ...

    def describe_end(self) -> str:
        """How the learner has ended, in words."""
        ...

    def close(self, farewell: Message | None) -> None:
        """Ends the link, after a last message if there is one; doing it twice is fine."""
        ...


class MessageLink(Protocol):
    """What a learner needs of its actor."""

    def send(self, message: Message) -> None:
        """Sends a message; raises `PeerGoneError` if nobody is there any more."""
        ...

    def receive(self) -> Message:
        """The next message, however long it takes; raises `PeerGoneError` if nobody is there any more."""
        ...
