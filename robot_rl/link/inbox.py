"""Messages of the learner, kept for the actor: the receiving thread puts them in, the actor's thread takes them out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from robot_rl.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    DivergedError,
    LinkError,
    RobotRLError,
    SpecError,
)
from robot_rl.link.messages import Failure, LearnerReady, Logs, Message, Parameters, StatePart, UpdateProgress
from robot_rl.link.state_transfer import CheckpointAssembler

SILENCE_LIMIT = 120
"""Longest time without any message while one is awaited [s]; a first update that is compiled may take a minute."""

_ERRORS: dict[str, type[RobotRLError]] = {
    error.__name__: error for error in (CheckpointError, ConfigError, DataError, DivergedError, SpecError)
}


def error_of(failure: Failure) -> RobotRLError:
    """Return the error that ended a learner, by its own name where that is known."""
    return _ERRORS.get(failure.error, LinkError)(failure.text)


class Inbox:
    """The newest messages of each kind.

    Attributes:
        progress: The newest counters of the learner.
        error: Why nothing more will arrive, or None.

    Args:
        silence_limit: Longest wait while nothing arrives [s].
    """

    def __init__(self, silence_limit: int = SILENCE_LIMIT) -> None:
        self._silence_limit = silence_limit
        self.progress = UpdateProgress(env_steps=0, updates=0, update_to_data=0.0)
        self.error: RobotRLError | None = None
        self._changed = threading.Condition()
        self._parts = CheckpointAssembler()
        self._ready: LearnerReady | None = None
        self._parameters: Parameters | None = None
        self._state: dict[str, Any] | None = None
        self._logs: deque[dict[str, float]] = deque()

    # For the receiving thread.

    def put(self, message: Message) -> None:
        """Store the content of a message.

        Raises:
            LinkError: if it is no message of a learner.
            CheckpointError: if a state has arrived damaged.
        """
        with self._changed:
            match message:
                case Parameters():
                    self._parameters = message
                case UpdateProgress():
                    self.progress = message
                case Logs():
                    self._logs.append(message.values)
                case LearnerReady():
                    self._ready = message
                case StatePart():
                    self._state = self._parts.add(message)
                case Failure():
                    raise error_of(message)
                case _:
                    raise LinkError(f"an actor does not accept the message {type(message).__name__}")
            self._changed.notify_all()

    def fail(self, error: RobotRLError) -> None:
        """Note that nothing more will arrive; the first reason counts."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def restart(self) -> None:
        """Forget the unfinished state of a learner that a new one has replaced."""
        with self._changed:
            self._parts = CheckpointAssembler()
            self._changed.notify_all()

    # For the actor's thread.

    def wait_for(self, done: Callable[[], bool]) -> bool:
        """Wait until `done()`; return False if nothing more will arrive, or nothing has for too long."""
        silent = 0
        with self._changed:
            while not done():
                if self.error is not None or silent >= self._silence_limit:
                    return False
                # In short waits, so that the time in which this process was stopped (Ctrl-Z) does not count.
                silent = 0 if self._changed.wait(1.0) else silent + 1
        return True

    def pop_parameters(self) -> Parameters | None:
        """Return the newest parameters, once."""
        with self._changed:
            parameters, self._parameters = self._parameters, None
        return parameters

    def pop_logs(self) -> dict[str, float] | None:
        """Return the oldest logs, once; None if there are none."""
        with self._changed:
            return self._logs.popleft() if self._logs else None

    def wait_for_ready(self) -> LearnerReady | None:
        """Wait for the answer of a learner that is ready; return None if none came, as `wait_for`."""
        self.wait_for(lambda: self._ready is not None)
        with self._changed:
            ready, self._ready = self._ready, None
        return ready

    def wait_for_state(self) -> dict[str, Any] | None:
        """Wait for the state that was requested; return None if none came, as `wait_for`."""
        self.wait_for(lambda: self._state is not None)
        with self._changed:
            state, self._state = self._state, None
        return state
