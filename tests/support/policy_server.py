"""A policy server as openpi has them, on a real websocket; its messages are written here by the documented format."""

import contextlib
import threading
import time

import msgpack
import numpy as np
from websockets.sync.server import serve


def packed(value):
    def plain(one):
        if isinstance(one, np.ndarray):
            return {b"__ndarray__": True, b"data": one.tobytes(), b"dtype": one.dtype.str, b"shape": one.shape}
        return {b"__npgeneric__": True, b"data": one.item(), b"dtype": one.dtype.str}

    return msgpack.packb(value, default=plain)


def unpacked(message):
    def array(one):
        if b"__ndarray__" in one:
            return np.ndarray(buffer=one[b"data"], dtype=np.dtype(one[b"dtype"]), shape=one[b"shape"])
        return one

    return msgpack.unpackb(message, object_hook=array)


class PolicyServer:
    """Answers as its attributes say, which may change at any time.

    Attributes:
        facts: Sent to each client first.
        answer: From observation to what is sent: a value to pack, or text.
        delay: Before each answer [s].
        seen: The observations.
        clients: How many are connected.
    """

    def __init__(self, size=3, facts=None):
        self.facts = {"name": "tiny"} if facts is None else facts
        self.answer = lambda observation: {"actions": np.full((4, size), 0.25), "server_timing": {"infer_ms": 1.0}}
        self.delay, self.seen, self.clients = 0.0, [], 0
        self._server = serve(self._serve, "127.0.0.1", 0, compression=None, max_size=None)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._connections = []

    @property
    def address(self):
        return f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"

    def _serve(self, connection):
        self._connections.append(connection)
        self.clients += 1
        connection.send(self.facts if isinstance(self.facts, str | bytes) else packed(self.facts))
        for message in connection:
            self.seen.append(unpacked(message))
            time.sleep(self.delay)
            answer = self.answer(self.seen[-1])
            connection.send(answer if isinstance(answer, str | bytes) else packed(answer))
        self.clients -= 1

    def stop(self):
        self._server.shutdown()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.socket.close()
        self._thread.join()
