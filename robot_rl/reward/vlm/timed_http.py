"""HTTP requests that end in time, with a reply of limited size, whatever the server does.

The time-out of a socket starts again with each byte that arrives, and `http.client` reads headers and lengths of chunks
without a look at the clock. So a timer shuts the socket down when the time is over. Only the look-up of a host name has
the limits of the system's resolver.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple, Self

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HeaderParsingError, HTTPError
from urllib3.util.response import assert_header_parsing

from robot_rl.errors import RobotRLError

MAX_REPLY = 4 * 2**20
"""Largest body that is read, decompressed [bytes]."""
_PIECE = 2**16
_OF_THREAD = threading.local()


class HttpReply(NamedTuple):
    """A whole reply.

    Attributes:
        status: HTTP status code.
        headers: Of the reply.
        body: Of the reply, decompressed.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoReplyError(RobotRLError):
    """A request has no whole reply: there was no connection, or it came too late, broke off or was too large.

    Args:
        reason: Why not.
        sent: Whether the server may have seen the request, or a part of it.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class TimedHttp:
    """Requests over connections that are used again. Threads may share it.

    Args:
        connections: Largest number of requests at the same time.
    """

    def __init__(self, connections: int) -> None:
        self._pool = urllib3.PoolManager(maxsize=connections, block=True, retries=False)
        self._pool.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def request(
        self, method: str, url: str, payload: Mapping[str, Any] | None, headers: Mapping[str, str], seconds: float
    ) -> HttpReply:
        """Make a request; follow no redirect, because a key is for the server that it was given for.

        Args:
            method: `GET` or `POST`.
            url: Where to.
            payload: JSON values; None for no body.
            headers: Of the request.
            seconds: Longest time until the reply is complete [s].

        Raises:
            NoReplyError: if there is no whole reply.
        """
        with _Watch(seconds) as watch:
            try:
                reply = self._pool.request(
                    method,
                    url,
                    json=payload,
                    headers=headers,
                    timeout=urllib3.Timeout(total=watch.seconds),
                    redirect=False,
                    preload_content=False,
                )
                return HttpReply(reply.status, reply.headers, _read_body(reply, watch))
            except HTTPError as error:
                watch.check()
                raise NoReplyError(f"{type(error).__name__}: {error}", sent=watch.sent) from error

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.clear()


class _Watch:
    """Shuts down the socket of this thread's request when its time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = min(max(seconds, 0.001), threading.TIMEOUT_MAX)
        self.sent = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(self.seconds, self._end)
        self._timer.daemon = True
        self._socket: socket.socket | None = None
        self._over = False

    def __enter__(self) -> Self:
        _OF_THREAD.watch = self
        self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        self.hold(None)

    def hold(self, sock: socket.socket | None) -> None:
        """Set the socket of the request; None lets go of it, so that its next request is not disturbed."""
        with self._lock:
            self._socket = sock
            if self._over:
                self._shut_down()

    def check(self) -> None:
        """Check that there is time left.

        Raises:
            NoReplyError: if there is none.
        """
        if self._over:
            raise NoReplyError(f"the reply was not complete in time ({self.seconds:g} s)", sent=self.sent)

    def _end(self) -> None:
        with self._lock:
            self._over = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it is closed already
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # that of TLS would drop its state as well


class _StrictResponse(HTTPResponse):
    """A response that is refused if its headers cannot be read. urllib3 would log them, secrets included."""

    def begin(self) -> None:
        super().begin()
        try:
            assert_header_parsing(self.msg)
        except (HeaderParsingError, TypeError) as error:
            raise HTTPException("its headers cannot be read") from error


class _HttpConnection(HTTPConnection):
    """A connection whose socket the watch of the thread holds during a request."""

    response_class = _StrictResponse

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        watch: _Watch = _OF_THREAD.watch
        watch.hold(self.sock)
        watch.sent = True
        super().send(data)


class _HttpsConnection(_HttpConnection, HTTPSConnection):
    """The same, encrypted."""


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


def _read_body(reply: urllib3.BaseHTTPResponse, watch: _Watch) -> bytes:
    body = bytearray()
    try:
        while piece := reply.read1(_PIECE, decode_content=True):
            body += piece
            if len(body) > MAX_REPLY:
                raise NoReplyError(f"the reply is larger than {MAX_REPLY} bytes", sent=True)
            watch.check()
        watch.check()
    except (HTTPError, NoReplyError):
        reply.close()
        raise
    finally:
        reply.release_conn()
    return bytes(body)
