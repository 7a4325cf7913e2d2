"""Who is served: only our own page, with the token, isolated from all other pages."""

from __future__ import annotations

import hmac
import secrets
from typing import NamedTuple
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from robot_rl.console.access.address import Address
from robot_rl.errors import ConfigError

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


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
        return None if ours else Refusal(403, "this server answers its own page only")

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


def guard(access: Access) -> Middleware:
    """Return a middleware that refuses requests of other pages and adds the headers that isolate ours."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = access.refusal(request.headers.get("Origin"), request.headers.get("Host", ""))
        if refusal is not None:
            return web.Response(status=refusal.status, text=refusal.text, headers=HEADERS)
        response = await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return check
