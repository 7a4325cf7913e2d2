"""A server on a bare socket, for replies that no HTTP library would send."""

import contextlib
import gzip
import itertools
import json
import socket
import threading
import time

from model_server import reply

BODY = json.dumps(reply("fine")).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def whole(body, *headers):
    """The pieces of a reply with this body and these headers."""
    return [
        b"HTTP/1.1 200 OK\r\n",
        *(line + b"\r\n" for line in headers),
        b"Content-Length: %d\r\n\r\n" % len(body),
        body,
    ]


def bytewise(content):
    """The content as one piece for each byte."""
    return [content[i : i + 1] for i in range(len(content))]


def zipped_zeros(size, layers=1):
    """`size` zeros, gzipped so many times over."""
    content = gzip.compress(bytes(size), 9)
    for _ in range(layers - 1):
        content = gzip.compress(content, 9)
    return content


class RawServer:
    """Answers each request with the pieces of a reply, one each `pause` seconds; then it may hang up.

    What it answers with may be changed between requests.
    """

    def __init__(self, pieces, pause=0.0, *, hangs_up=False):
        self.pieces, self.pause, self.hangs_up = pieces, pause, hangs_up
        self.connections, self.requests = 0, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as requests:
            while head := list(itertools.takewhile(bytes.strip, requests)):
                sizes = [int(line.split()[1]) for line in head if line.lower().startswith(b"content-length")]
                requests.read(sum(sizes))
                self.requests += 1
                pieces, pause, hangs_up = self.pieces, self.pause, self.hangs_up
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(pause)
                if hangs_up:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
