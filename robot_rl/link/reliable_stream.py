"""Messages over a wire that may lose, repeat or delay frames, between processes that may end and come back.

Each side numbers its messages. The other side accepts them in order, once, and acknowledges them; the sender repeats
what is not acknowledged (go-back-n). A process draws a random number when it starts. A side that receives a new number
has a new peer: it counts from 0 again and sends all that it stores; frames of the replaced process are ignored. Nothing
here waits: `post` only stores, and `pump` sends what is due.

Messages that wait for a peer are stored on the disk, so that their number does not matter.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from robot_rl.errors import LinkError
from robot_rl.link.frame import PIECE, WireFrame, WireFrameKind, pack, unpack
from robot_rl.system.atomic_file import writing


class Spool:
    """A list of byte strings in a file without a name, which is gone with its process.

    Args:
        folder: Folder of the file; None takes the system's folder for temporary files.

    Raises:
        RunDirectoryError: from every method that writes, if the disk does not take it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._places: list[tuple[int, int]] = []  # offset and size
        self._end = 0
        self._file = self._make()

    def __len__(self) -> int:
        """Messages in it."""
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """Their size together."""
        return self._end

    def append(self, content: bytes) -> None:
        """Add a message at the end."""
        with writing(self._folder or Path(tempfile.gettempdir())):
            os.pwrite(self._file, content, self._end)
        self._places.append((self._end, len(content)))
        self._end += len(content)

    def __getitem__(self, index: int) -> bytes:
        """Return the message at an index from 0."""
        offset, size = self._places[index]
        return os.pread(self._file, size, offset)

    def size(self, index: int) -> int:
        """Return the size of the message at an index [bytes]."""
        return self._places[index][1]

    def restart(self, contents: Iterable[bytes]) -> None:
        """Replace all messages by these."""
        old, self._file, self._places, self._end = self._file, self._make(), [], 0
        os.close(old)
        for content in contents:
            self.append(content)

    def close(self) -> None:
        """Free the disk space; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _make(self) -> int:
        with writing(self._folder or Path(tempfile.gettempdir())):
            descriptor, name = tempfile.mkstemp(prefix=".spool-", dir=self._folder)
            os.unlink(name)  # the descriptor keeps it until the process ends, however it ends
        return descriptor


WINDOW = 4 * 2**20
"""Bytes that may be on their way without acknowledgement."""
RESEND_AFTER = 0.3
"""Time without any acknowledgement after which what is on its way is sent again [s]."""
BEACON = 0.25
"""Longest time between two acknowledgements [s]."""


class Stream:
    """One end of the wire.

    Args:
        send: Puts a frame on the wire; may lose it.
        deliver: Receives each message of the peer, in order, once. Returns False if it has no room now: then the
            message comes again.
        on_peer: Called when the first frame of a peer, or of a new one, has arrived.
        spool: Stores what is posted, for a peer that comes back.
        forget: Whether what has arrived need not be kept, and nothing is kept for a new peer.
        clock: Time [s].
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        deliver: Callable[[bytes], bool],
        on_peer: Callable[[], None],
        spool: Spool,
        *,
        forget: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send, self._deliver, self._on_peer = send, deliver, on_peer
        self._spool, self._forget, self._clock = spool, forget, clock
        self._lock = threading.RLock()
        self.session = secrets.randbits(63) + 1
        self.peer = 0
        """Number of the other side; 0 before its first frame."""
        self._gone: set[int] = set()
        self._shift = 0  # place in the spool, minus number of the message
        self._arrived = (0, 0)  # number of the first message that the peer lacks, and what it has of it
        self._next = (0, 0)  # what is sent next
        self._last_progress = self._last_sent = -1e9
        self._expected = (0, bytearray())  # number of the message that is coming in, and its bytes so far

    def post(self, content: bytes) -> None:
        """Store a message to be sent."""
        with self._lock:
            self._spool.append(content)

    def restart_from(self, contents: Iterable[bytes]) -> None:
        """Set what a new peer receives instead of all that was posted so far.

        Raises:
            LinkError: if the present peer has not got all of that yet.
        """
        with self._lock:
            if self.waiting:
                raise LinkError(f"{self.waiting} messages have not arrived; they cannot be replaced by their sum")
            self._spool.restart(contents)
            self._shift = len(self._spool) - self._arrived[0]

    @property
    def waiting(self) -> int:
        """Messages posted that the peer has not acknowledged."""
        with self._lock:
            return len(self._spool) - self._shift - self._arrived[0]

    # The wire.

    def on_frame(self, content: bytes) -> None:
        """Receive the bytes of a frame.

        Raises:
            LinkError: if it is no frame of this version.
        """
        frame = unpack(content)
        with self._lock:
            if frame.sender in self._gone or frame.sender == self.session:
                return
            if frame.sender != self.peer:
                self._meet(frame.sender)
            if frame.receiver != self.session:
                self._acknowledge()  # it does not know us yet
            elif frame.kind == WireFrameKind.PROGRESS:
                self._on_acknowledged((frame.number, frame.offset))
            else:
                self._on_piece(frame)

    def pump(self) -> bool:
        """Send what is due; return whether there is more to send at once."""
        with self._lock:
            now = self._clock()
            if now - self._last_sent >= BEACON:
                self._acknowledge()
            if not self.peer:
                return False
            if now - self._last_progress >= RESEND_AFTER and self._next > self._arrived:
                self._next, self._last_progress = self._arrived, now
            return all(self._send_piece() for _ in range(8))  # then somebody else may have the lock

    # How.

    def _meet(self, sender: int) -> None:
        """Start counting again, for a new peer."""
        if self.peer:
            self._gone.add(self.peer)
        self.peer = sender
        if self._forget:
            self._spool.restart(())
        self._shift, self._arrived, self._next, self._expected = 0, (0, 0), (0, 0), (0, bytearray())
        self._last_progress = self._clock()
        self._acknowledge()
        self._on_peer()

    def _on_acknowledged(self, place: tuple[int, int]) -> None:
        if place > self._next or place <= self._arrived:
            return  # of an earlier time
        self._arrived, self._last_progress = place, self._clock()
        if self._forget and place[0] + self._shift == len(self._spool):
            self._spool.restart(())
            self._shift = -place[0]

    def _on_piece(self, frame: WireFrame) -> None:
        number, got = self._expected
        if (frame.number, frame.offset) == (number, len(got)) and frame.piece:
            got += frame.piece
            if len(got) == frame.size:
                if self._deliver(bytes(got)):
                    self._expected = (number + 1, bytearray())
                else:  # no room: its last piece has to come again
                    del got[frame.offset :]
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Send how much has arrived."""
        self._last_sent = self._clock()
        number, got = self._expected
        self._send(pack(WireFrame(WireFrameKind.PROGRESS, self.session, self.peer, number, len(got))))

    def _send_piece(self) -> bool:
        """Send the next piece, if there is one and the window has room."""
        number, offset = self._next
        place = number + self._shift
        if place >= len(self._spool) or self._on_the_way() >= WINDOW:
            return False
        content = self._spool[place]
        piece = content[offset : offset + PIECE]
        self._send(pack(WireFrame(WireFrameKind.PIECE, self.session, self.peer, number, offset, len(content), piece)))
        end = offset + len(piece)
        if self._next == self._arrived:
            self._last_progress = self._clock()
        self._next = (number + 1, 0) if end >= len(content) else (number, end)
        return True

    def _on_the_way(self) -> int:
        (first, had), (last, sent) = self._arrived, self._next
        whole = sum(self._spool.size(number + self._shift) for number in range(first, last))
        return whole - had + sent
