"""Writes a bag (MCAP, as rosbag2 does) from a thread of its own: whoever hears messages never waits for the disk.

It knows serialised messages, their types' definitions, and time; it does not know ROS.
"""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from robot_rl.errors import PluginError
from robot_rl.system.atomic_file import writing

CAPACITY = 256 * 2**20
"""Bytes that may wait for the disk."""
PART = ".part"
"""Ends the name of a bag that is not complete; `mcap recover` mends one that was left behind by a killed process."""


class MessageType(NamedTuple):
    """A type of messages: its name, e.g. `sensor_msgs/msg/Image`, and its definition, those that it needs included."""

    name: str
    definition: str


@dataclass(frozen=True)
class BagLoad:
    """Progress of a bag.

    Attributes:
        messages: Written, or waiting to be.
        bytes: Of them.
        dropped: Messages that found no room to wait.
        error: Why nothing is written any more; None if all is well.
    """

    messages: int
    bytes: int
    dropped: int
    error: str | None


class BagWriter:
    """One bag.

    Args:
        path: The file, `*.mcap`; until `close` it has `.part` at its end.
        capacity: Bytes that may wait for the disk.

    Raises:
        PluginError: if the package that writes bags is not installed.
        RunDirectoryError: if the file cannot be made.
    """

    def __init__(self, path: Path, capacity: int = CAPACITY) -> None:
        try:
            from mcap.writer import Writer
        except ImportError as error:
            raise PluginError("bags need mcap: pip install 'robot_rl[mcap]'") from error
        self.path, self._part, self._capacity = path, path.with_name(path.name + PART), capacity
        with writing(self._part):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = open(self._part, "xb")  # noqa: SIM115  (closed by the thread)
        self._writer: Any = Writer(self._stream)
        self._writer.start(profile="ros2", library="robot_rl")
        self._queue: queue.SimpleQueue[tuple[str, MessageType, int, bytes] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._messages = self._bytes = self._waiting = self._dropped = 0
        self._error: str | None = None
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="bag", daemon=True)
        self._thread.start()

    @property
    def load(self) -> BagLoad:
        """Progress of the bag."""
        with self._lock:
            return BagLoad(self._messages, self._bytes, self._dropped, self._error)

    def add(self, topic: str, kind: MessageType, stamp: int, data: bytes) -> None:
        """Take a message and returns at once.

        Args:
            topic: Full name of its topic.
            kind: Its type.
            stamp: When it came [ns since 1970].
            data: The message, serialised (CDR).
        """
        with self._lock:
            if self._error is not None or self._waiting + len(data) > self._capacity:
                self._dropped += 1
                return
            self._messages, self._bytes = self._messages + 1, self._bytes + len(data)
            self._waiting += len(data)
        self._queue.put((topic, kind, stamp, data))

    def close(self) -> BagLoad:
        """Write what waits and gives the file its name; how it went. Doing it twice is fine."""
        self._queue.put(None)
        self._thread.join()
        return self.load

    def _run(self) -> None:
        try:
            with self._stream:
                while (entry := self._queue.get()) is not None:
                    self._write(*entry)
                self._writer.finish()
                self._stream.flush()
                os.fsync(self._stream.fileno())
            os.replace(self._part, self.path)
        except OSError as error:
            with self._lock:
                self._error = f"{self._part} cannot be written: {error.strerror or error}; what came so far is in it"

    def _write(self, topic: str, kind: MessageType, stamp: int, data: bytes) -> None:
        with self._lock:
            self._waiting -= len(data)
        if kind.name not in self._schemas:
            self._schemas[kind.name] = self._writer.register_schema(kind.name, "ros2msg", kind.definition.encode())
        if topic not in self._channels:
            self._channels[topic] = self._writer.register_channel(topic, "cdr", self._schemas[kind.name])
        self._writer.add_message(self._channels[topic], stamp, data, stamp)
