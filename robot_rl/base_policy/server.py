"""A policy behind a websocket, as openpi serves them: pi0, OpenVLA, or anything that speaks its protocol.

The server sends a map of facts when a client connects. Then each observation is answered by a map with `actions`,
shape (H, n); an error is answered by text. Both are msgpack with numpy arrays, see `openpi_messages.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_rl.base_policy import openpi_messages
from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSetup, BaseSpec, Stamped
from robot_rl.base_policy.observation_names import ObservationNames
from robot_rl.base_policy.planner import REPLY_LIMIT
from robot_rl.errors import BasePolicyError, PluginError

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

CONNECT_LIMIT = 10.0
"""Longest time for a connection [s]."""
NEEDS_WEBSOCKETS = "a policy server needs websockets; install it with: pip install 'robot_rl[openpi]'"
MAX_MESSAGE = 1 << 26
"""Largest message of a server [bytes]."""


class ServerPolicy(BasePolicy):
    """A policy server.

    Its facts may say `control_period` [s], `action_horizon` and `action_dim`; what they say has to fit the task. One of
    ours says more, see `serving.py`.

    Args:
        setup: Its path is the address, `ws://HOST:PORT`. `base.names` maps observations; without it the server gets
            ours under our names. The task's sentence goes along as `prompt`.

    Raises:
        BasePolicyError: if there is no such server, or it does not speak the protocol.
        PluginError: if the package for websockets is not installed.
    """

    def __init__(self, setup: BaseSetup) -> None:
        if not setup.path.startswith(("ws://", "wss://")):
            raise BasePolicyError(f"base {setup.name}: its address is ws://HOST:PORT or wss://HOST:PORT")
        task, config = setup.task, setup.config.base
        self.name, self._address, self._prompt = setup.name, setup.path, task.instruction
        self._connection: ClientConnection | None = None
        self._opened = contextlib.ExitStack()
        facts = self._connect()
        self._facts = _fingerprint(facts)
        observed = _shapes(facts.get("observations"))
        usual = {key: (key,) for key in setup.observations if observed is None or key in observed}
        self._names = ObservationNames(config.names, usual, setup.observations, setup.name)
        self._seeds = bool(facts.get("episode_seeds"))
        self._episode: dict[str, int] = {}
        self._begins = self._episode  # what the next request begins
        self.spec = BaseSpec(
            observations=self._names.ours if observed is None or config.names else observed,
            action_size=_number(facts, "action_dim", task.action_size),
            grippers=_number(facts, "grippers", task.grippers, least=0),
            period=float(facts.get("control_period", task.control_period)),
            horizon=_number(facts, "action_horizon", config.horizon),
            history=_number(facts, "observation_history", 1),
            ahead=True,
            arms=tuple(map(str, facts.get("arms", task.arms))),
        )

    @property
    def identity(self) -> str:
        """A hash of the facts that the server sends; a server of constant facts cannot be told from another one."""
        return f"server with facts {self._facts}"

    def begin(self, seed: int, environment: object) -> None:
        """Start an episode, of which a server that draws from seeds is told with the first request."""
        del environment
        self._episode = {"seed": seed} if self._seeds else {}
        self._begins = self._episode

    def plan(self, history: Sequence[Stamped]) -> ActionChunk:
        """Ask the server, which is connected to again if the connection ended since the last plan.

        Raises:
            BasePolicyError: if it is gone, does not answer in time, or answers what is no chunk.
        """
        newest, observations = history[-1], [one.observation for one in history]
        seen = self._names.of(observations[-1]) if self.spec.history == 1 else self._names.of_history(observations)
        request = {**seen, "prompt": self._prompt}
        reply = self._ask(request)
        if isinstance(reply, str):
            last = reply.strip().splitlines()[-1:] or ["nothing"]
            raise BasePolicyError(f"base {self.name} answered an error: {last[0][:300]}")
        try:
            content = openpi_messages.unpack(reply)
            actions = np.asarray(content["actions"], np.float32)
        except (ValueError, TypeError, KeyError) as error:
            raise BasePolicyError(
                f"base {self.name} answered what has no `actions` of numbers: {type(error).__name__}: {error}"
            ) from error
        return ActionChunk.from_now(actions, newest, self.spec.period)

    def close(self) -> None:
        """End the connection."""
        self._connection = None
        with contextlib.suppress(OSError):
            self._opened.close()

    def _ask(self, request: Mapping[str, Any]) -> bytes | str:
        from websockets.exceptions import WebSocketException

        if self._connection is None:
            self._reconnect()
        connection = self._connection
        try:
            if connection is None:
                raise EOFError
            connection.send(openpi_messages.pack({**request, **self._begins}))
            reply, self._begins = connection.recv(timeout=REPLY_LIMIT), {}
            return reply
        except TimeoutError as error:
            self.close()
            raise BasePolicyError(f"base {self.name} has not answered for {REPLY_LIMIT:g} s") from error
        except (OSError, EOFError, WebSocketException) as error:
            self.close()
            raise BasePolicyError(f"base {self.name}: its server is gone: {error}; start it again") from error

    def _reconnect(self) -> None:
        """Connect again; refuse a server that says something else than before."""
        if _fingerprint(self._connect()) != self._facts:
            self.close()
            raise BasePolicyError(
                f"base {self.name}: another base is served there now; bring that one back, or start a new run"
            )
        self._begins = self._episode

    def _connect(self) -> Mapping[str, Any]:
        """Connect; return the facts of the server."""
        try:
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        except ImportError as error:
            raise PluginError(NEEDS_WEBSOCKETS) from error
        try:
            opening = connect(
                self._address, compression=None, max_size=MAX_MESSAGE, open_timeout=CONNECT_LIMIT, close_timeout=1
            )
            self._connection = self._opened.enter_context(opening)
            message = self._connection.recv(timeout=CONNECT_LIMIT)
            facts = openpi_messages.unpack(message if isinstance(message, bytes) else message.encode())
        except (OSError, ValueError, WebSocketException) as error:  # the first includes what takes too long
            self.close()
            raise BasePolicyError(
                f"base {self.name}: no policy server answers there: {error}; check the address"
            ) from error
        if not isinstance(facts, Mapping):
            self.close()
            raise BasePolicyError(
                f"base {self.name}: its server begins with a {type(facts).__name__}, expected a map of facts"
            )
        return facts


def _fingerprint(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(openpi_messages.pack(facts)).hexdigest()[:16]


def _number(facts: Mapping[str, Any], name: str, otherwise: int, least: int = 1) -> int:
    value = facts.get(name, otherwise)
    if not isinstance(value, int) or value < least:
        expected = "a positive number" if least else "a number from 0 on"
        raise BasePolicyError(f"the policy server says {name}={value!r:.50}; expected {expected}")
    return value


def _shapes(said: object) -> dict[str, tuple[int, ...]] | None:
    """Return the shapes of what a server observes; None if it does not say."""
    if said is None:
        return None
    try:
        return {str(key): tuple(map(int, shape)) for key, shape in dict(said).items()}  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise BasePolicyError(
            f"the policy server says observations={said!r:.80}; expected a shape for each name"
        ) from None
