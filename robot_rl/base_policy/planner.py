"""Who asks a base for its next chunk: in turn with control, or from a thread beside it."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from robot_rl.base_policy.contract import ActionChunk, BasePolicy, Stamped, checked_chunk
from robot_rl.env.environment import Environment
from robot_rl.errors import BasePolicyError, RobotRLError

REPLY_LIMIT = 10.0
"""Longest time that a base may take for a chunk before it counts as lost [s]; the arm holds long before."""
END_LIMIT = 2.0
"""Longest wait for a plan under way when all ends [s]."""
_LOOK = 0.05  # how often it is looked whether a base that is waited for still answers [s]


class Planner(Protocol):
    """Asks for chunks, one at a time."""

    lead: int
    """Control periods after which even a fast base's chunk comes, unless it is waited for."""

    @property
    def busy(self) -> bool:
        """Whether a chunk was asked for that has not been taken yet."""
        ...

    def begin(self, seed: int, environment: Environment | None) -> None:
        """Start an episode; what was asked for in the last one is dropped."""
        ...

    def request(self, history: Sequence[Stamped]) -> None:
        """Ask for a chunk."""
        ...

    def poll(self, patience: float = 0.0) -> ActionChunk | None:
        """Return the chunk that was asked for, once, or None while there is none; call it once in a control period.

        Args:
            patience: Longest wait for it [s].

        Raises:
            BasePolicyError: if the base failed, or has not answered for `REPLY_LIMIT`.
        """
        ...

    def wait(self) -> None:
        """Wait until the base does nothing; who calls may then ask it, up to the next `begin`.

        Raises:
            BasePolicyError: if it has not answered for `REPLY_LIMIT`.
        """
        ...

    def close(self) -> None:
        """End what runs; the base stays open."""
        ...


class InTurn:
    """Asks while everything else waits, so the result depends on nothing but the observations.

    Args:
        base: Whom.
        delay: Control periods after which a chunk arrives, as a slow base's would.
    """

    lead = 0

    def __init__(self, base: BasePolicy, delay: int = 0) -> None:
        self._base, self._delay = base, delay
        self._chunk: ActionChunk | None = None
        self._left = 0

    @property
    def busy(self) -> bool:
        """Whether a chunk is on its way."""
        return self._chunk is not None

    def begin(self, seed: int, environment: Environment | None) -> None:
        """Start an episode."""
        self._chunk = None
        self._base.begin(seed, environment)

    def request(self, history: Sequence[Stamped]) -> None:
        """Plan at once; the chunk arrives later."""
        self._chunk, self._left = checked_chunk(self._base.plan(history), self._base), self._delay

    def poll(self, patience: float = 0.0) -> ActionChunk | None:
        """Return the chunk when its delay is over."""
        del patience  # time stands still
        if self._chunk is None:
            return None
        if self._left > 0:
            self._left -= 1
            return None
        chunk, self._chunk = self._chunk, None
        return chunk

    def wait(self) -> None:
        """Do nothing: nothing runs."""

    def close(self) -> None:
        """Do nothing: nothing runs."""


class Beside:
    """Asks from a thread of its own, so that control waits no longer than it wants, at the start of an episode neither.

    Args:
        base: Whom.
        limit: Longest time for a chunk, from when the base begins with it [s].
    """

    lead = 1

    def __init__(self, base: BasePolicy, limit: float = REPLY_LIMIT) -> None:
        self._base, self._limit = base, limit
        self._episode, self._asked, self._closed = 0, False, False
        self._jobs: queue.SimpleQueue[tuple[int, Callable[[], ActionChunk | None]] | None] = queue.SimpleQueue()
        self._made: deque[tuple[int, ActionChunk | BaseException]] = deque()  # with the episode that it is for
        self._news = threading.Condition()
        self._since: float | None = None  # when the base began with what it does
        self._thread = threading.Thread(target=self._run, name=f"base {base.name}", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a chunk is under way."""
        return self._asked

    @property
    def ready(self) -> bool:
        """Whether an answer has come that was not taken yet."""
        return any(episode == self._episode for episode, _ in tuple(self._made))

    def begin(self, seed: int, environment: Environment | None) -> None:
        """Start an episode, as soon as a plan that is under way is made, as a base does one thing at a time."""
        self._episode, self._asked = self._episode + 1, False
        self._jobs.put((self._episode, lambda: self._base.begin(seed, environment)))

    def request(self, history: Sequence[Stamped]) -> None:
        """Hand over what is known now."""
        self._asked = True
        self._jobs.put((self._episode, lambda: checked_chunk(self._base.plan(history), self._base)))

    def poll(self, patience: float = 0.0) -> ActionChunk | None:
        """Return the chunk if it has come, or comes within `patience`."""
        with self._news:
            self._news.wait_for(lambda: self.ready, patience)
        while self._made:
            episode, answer = self._made.popleft()
            if episode != self._episode:
                continue
            self._asked = False
            if isinstance(answer, RobotRLError):
                raise answer
            if isinstance(answer, BaseException):
                raise BasePolicyError(f"base {self._base.name} failed: {type(answer).__name__}: {answer}") from answer
            return answer
        if self._asked:
            self._check_time()
        return None

    def wait(self) -> None:
        """Wait for all that is under way."""
        idle = threading.Event()
        self._jobs.put((self._episode, idle.set))
        while self._thread.is_alive() and not idle.wait(_LOOK):
            self._check_time()

    def close(self) -> None:
        """End the thread once it has planned what is under way; what it has not begun with is dropped."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join(END_LIMIT)

    def _check_time(self) -> None:
        since = self._since
        if since is not None and time.monotonic() - since > self._limit:
            raise BasePolicyError(
                f"base {self._base.name} has not answered for {self._limit:g} s; the arm was stopped. Check that it "
                "still runs"
            )

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            episode, work = job
            if self._closed or episode != self._episode:
                continue
            self._since = time.monotonic()
            try:
                answer: ActionChunk | BaseException | None = work()
            except BaseException as error:  # noqa: BLE001  (whatever it is, control has to know)
                answer = error
            self._since = None
            if answer is not None:
                with self._news:
                    self._made.append((episode, answer))
                    self._news.notify()
