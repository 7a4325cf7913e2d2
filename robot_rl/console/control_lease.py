"""Exactly one page holds control, for as long as it keeps saying so."""

from __future__ import annotations

from dataclasses import dataclass

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.errors import RobotRLError

HEARTBEAT = 0.2
"""Time without a word after which a page has lost control [s]. With the time to notice and to act, the arm holds within
0.3 s; pages speak every 0.04 s."""


class LeaseError(RobotRLError):
    """Control was asked for, or used, by a page that does not hold it."""


@dataclass(frozen=True)
class Owner:
    """Who holds control.

    Attributes:
        page: Number of the connection.
        name: As the person gave it.
    """

    page: int
    name: str


class Lease:
    """Who holds control. Used by one thread only.

    Args:
        clock: Where time comes from.
        heartbeat: Time without a word after which control is lost [s].
    """

    def __init__(self, clock: Clock, heartbeat: float = HEARTBEAT) -> None:
        self._clock, self._heard, self.heartbeat = clock, 0, heartbeat
        self.owner: Owner | None = None

    def take(self, page: int, name: str) -> None:
        """Gives control to a page.

        Raises:
            LeaseError: if another holds it.
        """
        if self.owner is not None and self.owner.page != page:
            raise LeaseError(f"{self.owner.name} is in control; ask them to give it back")
        self.owner, self._heard = Owner(page, name), self._clock.now()

    def beat(self, page: int) -> None:
        """A page has said something.

        Raises:
            LeaseError: if it does not hold control.
        """
        self.check(page)
        self._heard = self._clock.now()

    def check(self, page: int) -> None:
        """Nothing, if the page holds control.

        Raises:
            LeaseError: if it does not.
        """
        if self.owner is None:
            raise LeaseError("nobody is in control; press Take control first")
        if self.owner.page != page:
            raise LeaseError(f"{self.owner.name} is in control")

    def give_back(self, page: int) -> Owner | None:
        """Takes control from a page; returns it if it had it."""
        if self.owner is None or self.owner.page != page:
            return None
        owner, self.owner = self.owner, None
        return owner

    @property
    def overdue(self) -> bool:
        """Whether who holds control has been silent for too long."""
        return self.owner is not None and self._clock.now() - self._heard > self.heartbeat * NS_PER_S
