"""The lease of control: at most one page holds it, and only while it sends messages."""

from __future__ import annotations

from dataclasses import dataclass

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.errors import RobotRLError

HEARTBEAT = 0.2
"""Time without a message after which a page has lost control [s]. With the time to notice and to act, the arm holds
within 0.3 s; pages send a message every 0.04 s."""


class LeaseError(RobotRLError):
    """Control was requested while another page holds it, or used by a page that does not."""


@dataclass(frozen=True)
class Owner:
    """The page in control.

    Attributes:
        page: Number of the connection.
        name: As the operator gave it.
    """

    page: int
    name: str


class Lease:
    """The page that holds control. Used by one thread only.

    Args:
        clock: Source of time.
        heartbeat: Time without a message after which control is lost [s].
    """

    def __init__(self, clock: Clock, heartbeat: float = HEARTBEAT) -> None:
        self._clock, self._renewed, self.heartbeat = clock, 0, heartbeat
        self.owner: Owner | None = None

    def take(self, page: int, name: str) -> None:
        """Give control to a page.

        Raises:
            LeaseError: if another holds it.
        """
        if self.owner is not None and self.owner.page != page:
            raise LeaseError(f"{self.owner.name} is in control; ask them to give it back")
        self.owner, self._renewed = Owner(page, name), self._clock.now()

    def beat(self, page: int) -> None:
        """Renew the lease, because its page has sent a message.

        Raises:
            LeaseError: if it does not hold control.
        """
        self.check(page)
        self._renewed = self._clock.now()

    def check(self, page: int) -> None:
        """Check that the page holds control.

        Raises:
            LeaseError: if it does not.
        """
        if self.owner is None:
            raise LeaseError("nobody is in control; press Take control first")
        if self.owner.page != page:
            raise LeaseError(f"{self.owner.name} is in control")

    def give_back(self, page: int) -> Owner | None:
        """Take control from a page; return its owner, or None if the page did not hold it."""
        if self.owner is None or self.owner.page != page:
            return None
        owner, self.owner = self.owner, None
        return owner

    @property
    def overdue(self) -> bool:
        """Whether the page in control has been silent for too long."""
        return self.owner is not None and self._clock.now() - self._renewed > self.heartbeat * NS_PER_S
