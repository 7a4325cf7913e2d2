"""What people need to open the console: its addresses, its fingerprint, and a QR code for a telephone."""

from __future__ import annotations

import io
import logging
import sys
from typing import Protocol
from urllib.parse import quote

import segno

from robot_rl.console.access.address import Address
from robot_rl.console.access.networks import page_url, reachable_hosts
from robot_rl.console.access.tls import Tls

logger = logging.getLogger(__name__)


class Served(Protocol):
    """A server of pages."""

    @property
    def address(self) -> Address:
        """Where it listens."""

    @property
    def tls(self) -> Tls | None:
        """Its certificate; None without TLS."""

    @property
    def token(self) -> str | None:
        """The secret that pages need; None where only this machine can reach it."""


WHITE_ON_BLACK, PLAIN = "\x1b[97;40m", "\x1b[0m"


def introduce(console: Served, what: str = "operator console", can: str = "lead the arm") -> None:
    """Print to stderr how the console is opened; warn if others can read along.

    It goes past `logging`, because the addresses hold the token.

    Args:
        console: The console, which is served.
        what: Its name.
        can: What who has the token can do, besides seeing the cameras.
    """
    print(introduction(console, what, terminal=sys.stderr.isatty()), file=sys.stderr, flush=True)
    if console.tls is None and not console.address.loopback:
        logger.warning(
            "the console is served without TLS on an address that others can reach: anybody on the network can read "
            f"the token, see the cameras and {can}; add --tls (over ROS: the parameter tls)"
        )


def introduction(console: Served, what: str = "operator console", *, terminal: bool) -> str:
    """Return the lines that say how the console is opened.

    Args:
        console: The console, which is served.
        what: Its name.
        terminal: Whether a person reads them on a terminal; then a QR code of the first address is added, unless only
            this machine can open it.
    """
    first, *others = page_urls(console)
    lines = [f"{what}: {first}", *(f"{'or':>{len(what)}}: {url}" for url in others)]
    if console.tls is not None:
        lines.append(f"its certificate has the SHA-256 fingerprint {console.tls.fingerprint}")
        lines.append("the browser warns of a certificate that it does not know: compare the fingerprint, then go on")
    if terminal and not console.address.loopback:
        lines.append(qr_code(first))
    return "\n".join(lines)


def page_urls(console: Served) -> list[str]:
    """Return the addresses for a browser, with the token; the first is as good as any."""
    scheme = "https" if console.tls is not None else "http"
    token = f"#token={quote(console.token, safe='')}" if console.token is not None else ""
    return [page_url(host, console.address.port, scheme) + token for host in reachable_hosts(console.address)]


def qr_code(text: str) -> str:
    """Return a QR code (ISO/IEC 18004) in half blocks, light on dark, for a terminal of any colours."""
    out = io.StringIO()
    segno.make(text, micro=False).terminal(out, compact=True)
    return "\n".join(f"{WHITE_ON_BLACK}{line}{PLAIN}" for line in out.getvalue().splitlines())
