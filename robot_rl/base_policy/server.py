"""A policy behind a websocket, as openpi serves them: pi0, OpenVLA, or anything that speaks its protocol.

The server sends a map of facts when a client connects. Then each observation is answered by a map with `actions`,
shape (H, n); an error is answered by text. Both are msgpack with numpy arrays, see `openpi_messages.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
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
FACTS_LIMIT = 300.0
"""Longest time for the facts once there is a connection [s]; a server may load its base first."""
SOON = 3.0
"""After how long without them the user is told what is waited for [s]."""
ACTIONS = "actions"
"""Fact of a server: what each entry of an action moves, as `EnvironmentSpec.actions`."""
NEEDS_WEBSOCKETS = "a policy server needs websockets; install it with: pip install 'robot_rl[openpi]'"
MAX_MESSAGE = 1 << 26
"""Largest message of a server [bytes]."""
logger = logging.getLogger(__name__)


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
        self.name, self._address, self._prompt = setup.name, setup.path, setup.task.instruction
        self._connection: ClientConnection | None = None
        self._opened, self._closed = contextlib.ExitStack(), False
        facts = self._connect()
        self._facts = _fingerprint(facts)
        try:
            self._adopt(facts, setup)
        except BaseException:
            self.close()
            raise

    def _adopt(self, facts: Mapping[str, Any], setup: BaseSetup) -> None:
        """Become what the server says that it is."""
        task, config = setup.task, setup.config.base
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
            period=_seconds(facts, "control_period", task.control_period),
            horizon=_number(facts, "action_horizon", config.horizon),
            history=_number(facts, "observation_history", 1),
            ahead=True,
            arms=_texts(facts, "arms", task.arms),
            actions=_text(facts, ACTIONS),
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
        except (ValueError, TypeError, KeyError, IndexError) as error:  # the last: an array in place of a map
            raise BasePolicyError(
                f"base {self.name} answered what has no `actions` of numbers: {type(error).__name__}: {error}"
            ) from error
        return ActionChunk.from_now(actions, newest, self.spec.period)

    def close(self) -> None:
        """End the connection for good."""
        self._closed = True
        self._disconnect()

    def _disconnect(self) -> None:
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
            self._disconnect()
            raise BasePolicyError(f"base {self.name} has not answered for {REPLY_LIMIT:g} s") from error
        except (OSError, EOFError, WebSocketException) as error:
            self._disconnect()
            raise BasePolicyError(f"base {self.name}: its server is gone: {error}; start it again") from error

    def _reconnect(self) -> None:
        """Connect again; refuse a server that says something else than before."""
        if self._closed:
            raise BasePolicyError(f"base {self.name} was closed; make it anew to ask it again")
        if _fingerprint(self._connect()) != self._facts:
            self._disconnect()
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
            message = self._first_message(self._connection)
            facts = openpi_messages.unpack(message if isinstance(message, bytes) else message.encode())
        except (OSError, ValueError, WebSocketException) as error:  # the first includes what takes too long
            self._disconnect()
            raise BasePolicyError(
                f"base {self.name}: no policy server answers there: {error}; check the address"
            ) from error
        if not isinstance(facts, Mapping):
            self._disconnect()
            raise BasePolicyError(
                f"base {self.name}: its server begins with a {type(facts).__name__}, expected a map of facts"
            )
        return facts

    def _first_message(self, connection: ClientConnection) -> bytes | str:
        with contextlib.suppress(TimeoutError):
            return connection.recv(timeout=min(SOON, FACTS_LIMIT))
        if (left := FACTS_LIMIT - SOON) > 0:
            logger.warning(
                "base %s: its server has not said yet what it serves; waiting for up to %g s more", self.name, left
            )
        try:
            return connection.recv(timeout=max(left, 0.0))
        except TimeoutError as error:
            self._disconnect()
            raise BasePolicyError(
                f"base {self.name}: its server lets us in, and has not said within {FACTS_LIMIT:g} s what it serves; "
                "wait until it has loaded its base, or check that it is a policy server"
            ) from error


def _fingerprint(facts: Mapping[str, Any]) -> str:
    told = {key: fact for key, fact in facts.items() if key != ACTIONS}  # an older server of the same base left it out
    return hashlib.sha256(openpi_messages.pack(told)).hexdigest()[:16]


def _number(facts: Mapping[str, Any], name: str, otherwise: int, least: int = 1) -> int:
    value = facts.get(name, otherwise)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        expected = "a positive number" if least else "a number from 0 on"
        raise BasePolicyError(f"the policy server says {name}={value!r:.50}; expected {expected}")
    return value


def _seconds(facts: Mapping[str, Any], name: str, otherwise: float) -> float:
    value = facts.get(name, otherwise)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise BasePolicyError(f"the policy server says {name}={value!r:.50}; expected a positive number of seconds")
    return float(value)


def _texts(facts: Mapping[str, Any], name: str, otherwise: Sequence[str]) -> tuple[str, ...]:
    value = facts.get(name, otherwise)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise BasePolicyError(f"the policy server says {name}={value!r:.50}; expected a list of names")
    return tuple(value)


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name, "")
    if not isinstance(value, str):
        raise BasePolicyError(f"the policy server says {name}={value!r:.50}; expected a text")
    return value


def _shapes(said: object) -> dict[str, tuple[int, ...]] | None:
    """Return the shapes of what a server observes; None if it does not say."""
    if said is None:
        return None
    try:
        return {str(key): tuple(map(int, shape)) for key, shape in dict(said).items()}  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):  # the last: an infinity
        raise BasePolicyError(
            f"the policy server says observations={said!r:.80}; expected a shape for each name"
        ) from None
