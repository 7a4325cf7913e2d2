"""Access to the console: its address, the origin of pages, their token, and a limit of their messages."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from typing import NamedTuple
from urllib.parse import urlsplit

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.errors import ConfigError, RobotRLError

TOKEN_VARIABLE = "ROBOT_RL_CONSOLE_TOKEN"
"""Environment variable with the token that pages have to know."""


HOST = re.compile(r"[\w.:%-]+")
"""What a name or number of a host is made of; `%` introduces the zone of an IPv6 address."""


class ConsoleError(RobotRLError):
    """The console cannot be served, e.g. because its port is in use."""


class Address:
    """The address on which the console listens.

    Args:
        text: `HOST`, `:PORT` or `HOST:PORT`; an IPv6 host in brackets.

    Raises:
        ConfigError: if it is no address.
    """

    default_port = 8480

    def __init__(self, text: str = "") -> None:
        try:
            parts = urlsplit(f"//{text}")
            self.host, port = parts.hostname or "127.0.0.1", parts.port
        except ValueError as error:
            raise ConfigError(f"{text!r} is no address; expected HOST, :PORT or HOST:PORT") from error
        if parts.path or parts.query or parts.fragment or parts.username or not HOST.fullmatch(self.host):
            raise ConfigError(f"{text!r} is no address; expected HOST, :PORT or HOST:PORT")
        self.port = self.default_port if port is None else port

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class Refusal(NamedTuple):
    """The answer to a request that is refused: status of HTTP, and the reason for people."""

    status: int
    text: str


class Access:
    """The checks before a page is served.

    Args:
        address: Where the console listens.
        token: The secret that pages need; None makes one unless only this machine can reach the console.
    """

    def __init__(self, address: Address, token: str | None = None) -> None:
        self._loopback = address.loopback
        self.token = token if token else None if address.loopback else secrets.token_urlsafe(24)

    def knows(self, token: str) -> bool:
        """Return whether that is the token."""
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())

    def refusal(self, origin: str | None, host: str) -> Refusal | None:
        """Return why a request with these headers is refused, if it is; see `same_origin`."""
        try:
            ours = self.same_origin(origin, host)
        except ConfigError as error:
            return Refusal(400, str(error))
        return None if ours else Refusal(403, "this console answers its own page only")

    def same_origin(self, origin: str | None, host: str) -> bool:
        """Return whether a request comes from our own page; one without an origin comes from no browser's page.

        Args:
            origin: The header `Origin`.
            host: The header `Host`.

        Raises:
            ConfigError: if a header cannot be read.
        """
        if not host:
            raise ConfigError("the request names no host")
        try:
            loopback, page = Address(host).loopback, None if origin is None else urlsplit(origin).netloc
        except ValueError as error:
            raise ConfigError(f"{origin!r} is no origin") from error
        if self._loopback and not loopback:
            return False  # another name for this machine: a page that rebinds its own name to us
        return page is None or page == host


class RateLimit:
    """A bucket of tokens.

    Args:
        clock: Source of time.
        rate: Messages per second in the long run.
        burst: Messages at once.
    """

    def __init__(self, clock: Clock, rate: float = 120.0, burst: float = 240.0) -> None:
        self._clock, self._rate, self._burst = clock, rate, burst
        self._left, self._then = burst, clock.now()

    def allows(self) -> bool:
        """Count a message; return whether it may pass."""
        now = self._clock.now()
        self._left = min(self._burst, self._left + self._rate * (now - self._then) / NS_PER_S)
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
