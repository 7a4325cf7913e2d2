"""A network between robots and a learner, as a relay that delays, slows and loses; to TCP a loss is a delay."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass

import numpy as np

CHUNK = 16 * 1024
"""Read at once [bytes]."""
RESENT_AFTER = 0.2
"""What a lost packet costs a stream of TCP: the shortest time until it is sent again [s]."""
PACKET = 1448
"""Payload of a packet of Ethernet [bytes]."""


@dataclass(frozen=True)
class LinkModel:
    """One robot's network, alike in both directions.

    Attributes:
        latency: One way [s].
        bandwidth: Of each direction [bytes/s].
        loss: Share of lost packets.
    """

    latency: float = 0.0
    bandwidth: float = float("inf")
    loss: float = 0.0


class Relay:
    """Passes connections on to a port of this machine, in a thread of its own.

    Args:
        port: Where to.
        model: The network of each connection.
        seed: Of what is lost.
    """

    def __init__(self, port: int, model: LinkModel, seed: int = 0) -> None:
        self._to, self._model, self._rng = port, model, np.random.default_rng(seed)
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._pass_on, "127.0.0.1", 0, backlog=1024, limit=CHUNK)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cut all connections."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cut(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._to, limit=CHUNK)
        with contextlib.suppress(ConnectionError):  # a side has gone
            await asyncio.gather(self._one_way(reader, other_writer), self._one_way(other_reader, writer))

    async def _one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on, in order; what is under way is bounded by the time that it takes."""
        model, free = self._model, time.monotonic()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=64)
        deliver = asyncio.ensure_future(self._deliver(under_way, writer))
        while not deliver.done() and (data := await reader.read(CHUNK)):
            free = max(free, time.monotonic()) + len(data) / model.bandwidth
            lost = int(self._rng.binomial(-(-len(data) // PACKET), model.loss))
            free += RESENT_AFTER * bool(lost)  # what follows waits for it
            await under_way.put((free + model.latency, data))
        if not deliver.done():
            await under_way.put((free + model.latency, b""))
        await deliver

    @staticmethod
    async def _deliver(under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()
