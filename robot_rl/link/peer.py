"""The contracts of the two ends of a link: the learner as the actor uses it, and the actor as the learner uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from robot_rl.errors import RobotRLError
from robot_rl.link.messages import Message


class LearnerPeer(Protocol):
    """Carries messages to a learner and back. One thread uses it, but for the callbacks."""

    def open(
        self,
        on_message: Callable[[Message], None],
        on_error: Callable[[RobotRLError], None],
        on_restart: Callable[[], None],
    ) -> None:
        """Start to carry messages.

        Args:
            on_message: Receives each message of the learner, in order, in another thread.
            on_error: Receives the reason why nothing is carried any more.
            on_restart: Called when a new learner has replaced the old one; it receives again all that was posted.

        Raises:
            LinkError: if there cannot be a learner.
        """
        ...

    def post(self, message: Message) -> None:
        """Queue a message to be sent; return at once.

        Raises:
            LinkError: if it has no encoding, or too many wait already.
        """
        ...

    def restart_from(self, messages: Callable[[], Iterable[Message]]) -> None:
        """Set the messages that a new learner receives: these, and those posted from now on."""
        ...

    def describe_end(self) -> str:
        """Describe how the learner has ended, for an error message."""
        ...

    def close(self, farewell: Message | None) -> None:
        """End the link, after a last message if there is one; a second call does nothing."""
        ...


class MessageLink(Protocol):
    """The actor as its learner uses it."""

    def send(self, message: Message) -> None:
        """Send a message; raise `PeerGoneError` if the actor is gone."""
        ...

    def receive(self) -> Message:
        """Wait for the next message; raise `PeerGoneError` if the actor is gone."""
        ...
