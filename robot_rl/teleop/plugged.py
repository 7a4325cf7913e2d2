"""What devices that can be unplugged have in common: opened when made, and opened again after they were lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, Protocol, TypeVar

from robot_rl.clock import Clock, SystemClock
from robot_rl.teleop.device import DeviceError, DeviceLostError, Reading

INSTALL = "pip install 'robot_rl[devices]'"


class DeviceStream(Protocol):
    """What is read from; raises `OSError` when it is unplugged."""

    def close(self) -> None:
        """Close it."""
        ...


S = TypeVar("S", bound=DeviceStream)


class PluggedDevice(ABC, Generic[S]):
    """A device that is plugged in; how its stream is read is up to its kind.

    Args:
        connect: Opens its stream; called again after it was lost. Raises `OSError` while it is away.
        name: For people.
        clock: Stamps the readings.

    Raises:
        DeviceError: if it cannot be opened.
    """

    permission: ClassVar[str]
    """How people get access to it."""

    def __init__(self, connect: Callable[[], S], name: str, clock: Clock | None = None) -> None:
        self.name, self._connect, self._clock = name, connect, clock or SystemClock()
        self._stream: S | None = None
        try:
            self._open()
        except OSError as error:
            raise DeviceError(f"cannot open {name}: {error}; {self.permission}") from error

    def read(self) -> Reading:
        """How it is held now.

        Raises:
            DeviceLostError: if it is unplugged.
        """
        try:
            self._drain(self._open() if self._stream is None else self._stream)
        except OSError as error:
            self.close()
            raise DeviceLostError(f"{self.name} is unplugged") from error
        return self._reading()

    def close(self) -> None:
        """Give it back."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _open(self) -> S:
        stream = self._connect()
        self._begin(stream)
        self._stream = stream
        return stream

    @abstractmethod
    def _begin(self, stream: S) -> None:
        """Forgets what was, and takes what a stream that was just opened says already."""

    @abstractmethod
    def _drain(self, stream: S) -> None:
        """Take all that changed; never waits."""

    @abstractmethod
    def _reading(self) -> Reading:
        """How it is held, as far as that was read."""
