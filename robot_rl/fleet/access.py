"""Where the learner of a fleet listens, and the proof that both sides know the same token.

Each side sends a random number and an HMAC-SHA256 of both numbers under the token (RFC 2104); the token itself never
crosses. What follows is neither encrypted nor signed: on a network that others use, put it into a tunnel.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket

from robot_rl.console.access.address import Address
from robot_rl.errors import ConfigError, LinkError
from robot_rl.link.socket import PeerGoneError

TOKEN_VARIABLE = "ROBOT_RL_FLEET_TOKEN"
"""Environment variable with the token, on all machines of a fleet."""
MIN_TOKEN = 16
"""Fewest characters of a token."""
_MAGIC = b"robot_rl fleet 1"
_NONCE = 32
_TIME_LIMIT = 10.0
"""Longest time for the proof [s]."""


class FleetAddress(Address):
    """The address of a fleet's learner: `HOST`, `:PORT` or `HOST:PORT`."""

    default_port = 8490

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def fleet_token(address: FleetAddress) -> str:
    """Return the token from the environment; empty is valid where only this machine can reach the address.

    Raises:
        ConfigError: if it is missing or too short.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and len(token) < MIN_TOKEN:
        raise ConfigError(f"{TOKEN_VARIABLE} has {len(token)} characters, a token needs at least {MIN_TOKEN}")
    if not token and not address.loopback:
        raise ConfigError(
            f"{address} can be reached by other machines: set {TOKEN_VARIABLE} to the same secret of at least "
            f"{MIN_TOKEN} characters on the learner's machine and on each robot's"
        )
    return token


def prove(stream: socket.socket, token: str, *, learner: bool) -> None:
    """Prove to the other side that we know the token, and have it prove the same.

    Args:
        stream: Connected.
        token: The secret.
        learner: Whether we are the learner.

    Raises:
        LinkError: if the other side is no fleet of this version, or has another token.
        PeerGoneError: if the other side hangs up meanwhile.
        OSError: if the connection is lost.
    """
    stream.settimeout(_TIME_LIMIT)
    mine = secrets.token_bytes(_NONCE)
    stream.sendall(_MAGIC + mine)
    head = _read(stream, len(_MAGIC) + _NONCE)
    if not head.startswith(_MAGIC):
        raise LinkError("the other side is no fleet of this version of robot_rl")
    theirs = head[len(_MAGIC) :]
    numbers = mine + theirs if learner else theirs + mine
    proofs = {role: hmac.digest(token.encode(), role + numbers, hashlib.sha256) for role in (b"learner", b"robot")}
    ours, expected = (b"learner", b"robot") if learner else (b"robot", b"learner")
    stream.sendall(proofs[ours])
    if not hmac.compare_digest(_read(stream, hashlib.sha256().digest_size), proofs[expected]):
        raise LinkError(f"the other side has another token; set {TOKEN_VARIABLE} to the same on all machines")


def _read(stream: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = stream.recv(size - len(content))
        if not piece:
            raise PeerGoneError("the other side hung up before it proved its token")
        content += piece
    return content
