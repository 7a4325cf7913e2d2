"""The places of pages: a few at the door, which have not shown the token yet, and a few inside."""

from __future__ import annotations

from robot_rl.console.control_lease import Lease

AT_DOOR = 24
INSIDE = 12


class Places:
    """Decide who makes room. Whoever comes gets in, so that everybody can stop the robot; who is in control stays.

    Only pages that have shown the token take a place inside: silent connections push out each other at the door. Used
    by one thread only.

    Args:
        lease: Who holds control.
        at_door: Places of connections that have not shown the token yet.
        inside: Places of pages.
    """

    def __init__(self, lease: Lease, at_door: int = AT_DOOR, inside: int = INSIDE) -> None:
        self._lease, self._most_at_door, self._most_inside = lease, at_door, inside
        self._at_door: list[int] = []
        self._inside: list[int] = []

    @property
    def taken(self) -> int:
        """Number of pages inside."""
        return len(self._inside)

    def arrive(self, page: int) -> int | None:
        """Give a connection a place at the door; return the one that has waited longest if it has to make room."""
        self._at_door.append(page)
        return self._at_door.pop(0) if len(self._at_door) > self._most_at_door else None

    def admit(self, page: int) -> int | None:
        """Give a page from the door a place inside; return the newest one not in control if it has to make room."""
        if page in self._at_door:
            self._at_door.remove(page)
        displaced = None
        if len(self._inside) >= self._most_inside:
            owner = self._lease.owner.page if self._lease.owner is not None else None
            displaced = next(other for other in reversed(self._inside) if other != owner)
            self._inside.remove(displaced)
        self._inside.append(page)
        return displaced

    def leave(self, page: int) -> None:
        """Free the place of a connection, if it still has one."""
        for places in (self._at_door, self._inside):
            if page in places:
                places.remove(page)
