"""How a page is let in, and the codes with which one is disconnected."""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType, web

from robot_rl.console.access.guard import Access
from robot_rl.console.protocol import BadMessageError, HelloMessage, parse

HELLO_SECONDS = 3.0
"""Time in which a page has to introduce itself."""
SEND_SECONDS = 2.0
"""Time in which a page has to receive a message; one that is slower is disconnected."""

# Codes with which a page is disconnected; 4000 to 4999 are free for applications (RFC 6455, 7.4.2).
BAD_TOKEN, TOO_MANY, NONSENSE, TOO_SLOW, DISPLACED = 4401, 4429, 4400, 4408, 4409


async def let_in(socket: web.WebSocketResponse, access: Access) -> str | None:
    """Return the name of who is at a page; None if the page has not shown the token, and is disconnected."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            first = await socket.receive()
        hello = parse(first.data) if first.type == WSMsgType.TEXT else None
    except (TimeoutError, BadMessageError):
        hello = None
    if isinstance(hello, HelloMessage) and access.knows(hello.token):
        return hello.name
    await asyncio.sleep(0.5)  # guessing shall take time
    await socket.close(code=BAD_TOKEN, message=b"wrong token")
    return None
