"""A base behind a websocket, for runs on other machines; the other end is `ServerPolicy`, or any client of openpi.

It speaks openpi's protocol (`openpi_messages.py`). Its facts say more than openpi's do: what it observes and moves, how
many of the newest observations it wants, and that a request may begin an episode. It knows bases; it does not know
runs, nor who asks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_rl.base_policy import openpi_messages
from robot_rl.base_policy.contract import BasePolicy, Stamped, checked_chunk
from robot_rl.base_policy.server import ACTIONS, MAX_MESSAGE, NEEDS_WEBSOCKETS
from robot_rl.clock import NS_PER_S
from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.errors import BasePolicyError, PluginError, RobotRLError

if TYPE_CHECKING:
    from websockets.sync.server import ServerConnection

CLOSE_LIMIT = 1.0
"""Longest wait for a client to confirm that its connection ends [s]."""
SEED = "seed"
"""Of a request that begins an episode; everything random in it follows from that."""


def facts_of(base: BasePolicy) -> dict[str, Any]:
    """Return what a client has to know of a base, as the first message of a connection."""
    spec = base.spec
    return {
        "identity": base.identity,
        "action_dim": spec.action_size,
        "action_horizon": spec.horizon,
        "control_period": spec.period,
        "grippers": spec.grippers,
        "arms": list(spec.arms),
        "observations": {key: list(shape) for key, shape in spec.observations.items()},
        "observation_history": spec.history,
        "episode_seeds": True,
        **({ACTIONS: spec.actions} if spec.actions else {}),
    }


class BaseServer:
    """Answers clients, each with a base of its own, so that none disturbs the episode of another one.

    Args:
        make: Makes the base; called once for each connection.
        host: Where to listen; `127.0.0.1` is this machine alone.
        port: Of the host; 0: any that is free.
        log: Receives who comes and goes, and what was refused.

    Raises:
        PluginError: if the package for websockets is not installed.
        BasePolicyError: if it cannot listen there.

    Attributes:
        address: For clients.
        plans: How many chunks were answered.
    """

    def __init__(self, make: Callable[[], BasePolicy], host: str, port: int, log: Callable[[str], object]) -> None:
        try:
            from websockets.sync.server import serve
        except ImportError as error:
            raise PluginError(NEEDS_WEBSOCKETS) from error
        self._make, self._log, self.plans = make, log, 0
        self._planning, self._stopped = threading.Lock(), threading.Event()
        self._connections: set[ServerConnection] = set()
        try:
            self._server = serve(
                self._answer_one, host, port, compression=None, max_size=MAX_MESSAGE, close_timeout=CLOSE_LIMIT
            )
        except (OSError, OverflowError) as error:  # the second: a port beyond 65535
            raise BasePolicyError(
                f"cannot listen on {host}, port {port}: {error}; choose another --host or --port"
            ) from error
        self.address = f"ws://{host}:{self._server.socket.getsockname()[1]}"

    def serve(self) -> None:
        """Answer until `stop` is called; then nobody is let in any more, and all connections are ended."""
        # Threads of its connections are daemons, too: one that computes does not keep the process from ending.
        thread = threading.Thread(target=self._server.serve_forever, name="policy server", daemon=True)
        thread.start()
        try:
            self._stopped.wait()
        finally:
            self._server.shutdown()
            for connection in tuple(self._connections):  # older websockets leave them open
                connection.close()
            thread.join()

    def stop(self) -> None:
        """Have `serve` return; may be called from a handler of signals."""
        self._stopped.set()

    def _answer_one(self, connection: ServerConnection) -> None:
        """Answer a client for as long as it is there."""
        from websockets.exceptions import ConnectionClosed

        host, port = connection.remote_address[:2]
        self._log(f"{host}:{port} has come")
        self._connections.add(connection)
        try:
            with contextlib.closing(self._make()) as base, contextlib.suppress(ConnectionClosed):
                base.begin(0, None)
                connection.send(openpi_messages.pack(facts_of(base)))
                for message in connection:
                    connection.send(self._answer(base, message))
        finally:
            self._connections.discard(connection)
            self._log(f"{host}:{port} has gone")

    def _answer(self, base: BasePolicy, message: bytes | str) -> bytes | str:
        """Return a chunk, or why there is none."""
        try:
            request = openpi_messages.unpack(message if isinstance(message, bytes) else message.encode())
            with self._planning:
                if (seed := _map(request).get(SEED)) is not None:
                    base.begin(_natural(seed), None)
                chunk = checked_chunk(base.plan(history_of(request, base)), base)
                self.plans += 1
        except RobotRLError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, the client has to know)
            reason = f"{type(error).__name__}: {error}"
        else:
            return openpi_messages.pack({"actions": chunk.actions})
        self._log(f"refused: {reason}")
        return reason


def history_of(request: object, base: BasePolicy) -> list[Stamped]:
    """Return the observations of a request, oldest first, as if the first had been measured at time 0.

    Vectors are those of the newest observations, shape (k, *shape) with k at most the base's history, or of the newest
    one alone, in the shape of the base; pictures are of the newest one.

    Raises:
        BasePolicyError: naming what is missing, or has another shape.
    """
    given, spec, name = _map(request), base.spec, base.name
    if missing := sorted(set(spec.observations) - set(given)):
        wanted = ", ".join(sorted(spec.observations))
        raise BasePolicyError(f"the base {name} observes {wanted}, and {', '.join(missing)} did not come")
    columns, lengths = dict[str, np.ndarray](), set[int]()
    for key, shape in spec.observations.items():
        value, picture = np.asarray(given[key]), key.startswith(IMAGE_PREFIX)
        rows = value[None] if value.shape == shape else value
        most = 1 if picture else spec.history
        if rows.shape[1:] != shape or not 1 <= len(rows) <= most or rows.dtype.kind not in ("u" if picture else "biuf"):
            more = f", or up to {most} of these, oldest first" if most > 1 else ""
            raise BasePolicyError(
                f"the base {name} expects {key} as numbers of shape {shape}{more}, got {value.dtype} of shape "
                f"{value.shape}"
            )
        columns[key] = rows if picture else rows.astype(np.float32)
        lengths |= set() if picture else {len(rows)}
    if len(lengths) > 1:
        raise BasePolicyError(f"a request to the base {name} has histories of different lengths: {sorted(lengths)}")
    count, period = max(lengths, default=1), round(spec.period * NS_PER_S)
    return [
        Stamped(row * period, {key: column[row if len(column) > 1 else 0] for key, column in columns.items()})
        for row in range(count)
    ]


def _map(request: object) -> Mapping[str, Any]:
    if not isinstance(request, Mapping):
        raise BasePolicyError(f"a request was a {type(request).__name__}; expected a map of observations")
    return request


def _natural(seed: object) -> int:
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise BasePolicyError(f"{SEED}={seed!r:.50} of a request; expected a number from 0 on")
    return seed
