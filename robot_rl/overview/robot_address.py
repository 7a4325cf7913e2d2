"""Where the console of a robot is, as that console prints it, and where the overview is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from robot_rl.console.access.address import Address
from robot_rl.errors import ConfigError

if TYPE_CHECKING:
    import aiohttp

_EXPECTED = "expected what its console prints, such as http://192.168.1.20:8480/#token=..."
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")


class OverviewAddress(Address):
    """The address of the overview: `HOST`, `:PORT` or `HOST:PORT`."""

    default_port = 8481


@dataclass(frozen=True)
class RobotAddress:
    """The console of one robot.

    Attributes:
        name: Of the robot.
        page: Address of the console's page, without the token.
        token: That the console demands; empty for none.
        fingerprint: SHA-256 of its certificate, 32 bytes; empty for one that an authority has signed.
    """

    name: str
    page: str
    token: str = ""
    fingerprint: bytes = b""

    @classmethod
    def parse(cls, name: str, url: str, token: str = "") -> RobotAddress:
        """Read the address of a console.

        Args:
            name: Of the robot.
            url: Its address, with `#token=...` and, for a certificate that no authority has signed, `&sha256=...`.
            token: Where the address has none.

        Raises:
            ConfigError: if it is no such address.
        """
        try:
            parts = urlsplit(url)
            netloc, host = parts.netloc, parts.hostname
            _ = parts.port  # raises for one that is no number
        except ValueError as error:
            raise ConfigError(f"{name}: {url!r} is no address ({error}); {_EXPECTED}") from error
        if parts.scheme not in ("http", "https") or not host or parts.username or parts.path not in ("", "/"):
            raise ConfigError(f"{name}: {url!r} is no address of a console; {_EXPECTED}")
        given = parse_qs(parts.fragment)
        if unknown := sorted(set(given) - {"token", "sha256"}):
            raise ConfigError(f"{name}: {', '.join(unknown)} means nothing in an address; valid: token, sha256")
        digest = given.get("sha256", [""])[0].replace(":", "")
        if digest and not _SHA256.fullmatch(digest):
            raise ConfigError(f"{name}: sha256 has to be the fingerprint that the console prints, 64 hex digits")
        if digest and parts.scheme != "https":
            raise ConfigError(f"{name}: a console at http:// has no certificate; leave sha256 out, or write https://")
        page = f"{parts.scheme}://{netloc}/"
        return cls(name, page, given.get("token", [token])[0], bytes.fromhex(digest))

    @property
    def socket(self) -> str:
        """Address of the connection of a page."""
        return self.page.replace("http", "ws", 1) + "ws"

    @property
    def certificate(self) -> aiohttp.Fingerprint | bool:
        """What the certificate is checked against: the fingerprint, or what this machine trusts."""
        import aiohttp  # only who connects needs it

        return aiohttp.Fingerprint(self.fingerprint) if self.fingerprint else True
