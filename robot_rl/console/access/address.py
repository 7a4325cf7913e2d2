"""The address on which the console listens, and the variable that names its token."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

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
            raise ConfigError(f"{text!r} is no address; expected HOST, :PORT or HOST:PORT ({error})") from error
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
