"""The learner's end of the link: connections of robots, what they send, and whose turn it is.

Each connection has a thread that receives and one that sends; the learner's own thread takes whole episodes. It takes
them from the robot that has had the least for its share, so a robot that floods fills its own queue and then waits.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.data.store.tail import Cursor
from robot_rl.errors import LinkError, RobotRLError
from robot_rl.fleet.access import prove
from robot_rl.fleet.uplink import BEAT, CREDIT, SILENCE
from robot_rl.link.messages import (
    EpisodeLabel,
    EpisodePart,
    EpisodeRewards,
    EpisodesLearned,
    Failure,
    Message,
    Parameters,
    RobotAccepted,
    RobotBeat,
    RobotFinished,
    RobotHello,
    RobotRefused,
    UpdateProgress,
    encode,
)
from robot_rl.link.socket import Connection, PeerGoneError

PARAMETERS_EVERY = 0.1
"""Least time between two sets of parameters to one robot [s]; the newest is sent, those between are not."""
PARAMETERS_RATE, PARAMETERS_SETS = 50e6, 500
"""Most bytes of parameters, and most sets, that go to all robots together in a second."""


class ReceivedEpisode(NamedTuple):
    """A whole episode of a robot.

    Attributes:
        cursor: How far the robot's store is read with it.
        episode_id: Its name in that store.
        demonstration: Whether it is to be remembered as a demonstration.
        percepts: The T + 1 observations.
        steps: The T steps.
    """

    cursor: Cursor
    episode_id: str
    demonstration: bool
    percepts: list[Percept]
    steps: list[Transition]


Received = ReceivedEpisode | EpisodeLabel | EpisodeRewards | RobotFinished


class _Assembly:
    """Puts the parts of episodes together, in the order of the store."""

    def __init__(self, cursor: Cursor) -> None:
        self._next = cursor.episodes
        self._percepts: list[Percept] = []
        self._steps: list[Transition] = []

    def add(self, part: EpisodePart) -> ReceivedEpisode | None:
        """Add a part; return the episode with its last part, None before.

        Raises:
            LinkError: if a part is missing, comes twice, or does not fit.
        """
        place, count = (part.place, part.first), (self._next, len(self._steps))
        if place != count:
            raise LinkError(f"step {place[1]} of episode {place[0]} cannot follow {count[1]} steps of {count[0]}")
        if len(part.percepts) != len(part.steps) + (part.first == 0) or not part.steps:
            raise LinkError(f"episode {place[0]} has {len(part.percepts)} observations for {len(part.steps)} steps")
        self._percepts += part.percepts
        self._steps += part.steps
        if len(self._steps) < part.length:
            return None
        if len(self._steps) > part.length:
            raise LinkError(f"episode {place[0]} has {len(self._steps)} steps, announced were {part.length}")
        percepts, steps, self._percepts, self._steps = self._percepts, self._steps, [], []
        self._next += 1
        cursor = Cursor(self._next, part.fingerprint)
        return ReceivedEpisode(cursor, part.episode_id, part.demonstration, percepts, steps)


class _Outbox:
    """What is to be sent to one robot, as bytes: of parameters, counters and standing the newest, else everything."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        """Set when nothing more is sent."""
        self._changed = threading.Condition()
        self._newest: dict[type, bytes] = {}
        self._others: deque[bytes] = deque()
        self._closed = False
        self._sent = 0.0
        self._interval = PARAMETERS_EVERY

    def put(self, message: Message, content: bytes | None = None, interval: float = PARAMETERS_EVERY) -> None:
        """Queue a message; one of a kind of which only the newest counts replaces its predecessor.

        Args:
            message: The message.
            content: It as bytes, where it is encoded already, for all robots once.
            interval: Least time between two sets of parameters, if it is one [s].
        """
        content = content or encode(message)
        with self._changed:
            if isinstance(message, Parameters):
                self._interval = max(interval, PARAMETERS_EVERY)
            first = not self._newest
            if isinstance(message, Parameters | UpdateProgress | EpisodesLearned):
                self._newest[type(message)] = content
            else:
                self._others.append(content)
            if first or self._due():  # otherwise the thread that sends knows when it has to
                self._changed.notify_all()

    def close(self) -> None:
        """End `send_all`, after what is queued."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def send_all(self, connection: Connection, standing: Callable[[], Message]) -> None:
        """Send what is queued as it comes, and a sign of life where nothing is, until closed or the peer is gone."""
        try:
            with contextlib.suppress(PeerGoneError):
                while self._send_some(connection, standing):
                    pass
        finally:
            self.ended.set()

    def _send_some(self, connection: Connection, standing: Callable[[], Message]) -> bool:
        """Wait for something to send, and send it; return whether more may come."""
        with self._changed:
            beat = time.monotonic() + BEAT
            while not self._due() and not self._closed and (left := beat - time.monotonic()) > 0:
                self._changed.wait(min(left, max(self._next_paced() - time.monotonic(), 0.0)) if self._newest else left)
            messages, closed = self._take(), self._closed
        for content in messages or ([] if closed else [encode(standing())]):
            connection.send_encoded(content)
        return not closed

    def _due(self) -> bool:
        return bool(self._others) or EpisodesLearned in self._newest or (bool(self._newest) and self._may_send())

    def _may_send(self) -> bool:
        """Return whether a set of parameters, and the counters that go with it, may be sent."""
        return time.monotonic() >= self._next_paced()

    def _next_paced(self) -> float:
        return self._sent + self._interval

    def _take(self) -> list[bytes]:
        messages = [*self._others]
        self._others.clear()
        paced = self._may_send() or self._closed
        for kind in (Parameters, UpdateProgress, EpisodesLearned):
            if kind in self._newest and (paced or kind is EpisodesLearned):
                messages.append(self._newest.pop(kind))
                if kind is not EpisodesLearned:
                    self._sent = time.monotonic()
        return messages


@dataclass
class _Robot:
    """One robot, as the learner knows it."""

    share: float
    taken: Cursor = field(default_factory=Cursor)  # what the learner's thread has taken out of the queue
    learned: int = 0
    saved: int = 0
    finished: bool = False
    steps: int = 0  # taken since the learner was started
    queue: deque[Received] = field(default_factory=deque)
    session: int = 0
    connection: Connection | None = None
    outbox: _Outbox | None = None
    refused: str = ""


class Intake:
    """Accepts robots and queues their episodes.

    Args:
        listener: A listening socket; it belongs to the intake from now on.
        token: That robots must have.
        shares: Weight of each robot, by name.
        cursors: How far the store of each robot was read and saved.
        check: Refuses a hello that does not go with the learner; called in another thread, one at a time.
        check_episode: Refuses an episode that the learner cannot take, of the robot of this name.
        log: Receives a line about each robot that comes, goes or is refused.
    """

    def __init__(
        self,
        listener: socket.socket,
        token: str,
        shares: Mapping[str, float],
        cursors: Mapping[str, Cursor],
        check: Callable[[RobotHello], None],
        check_episode: Callable[[str, ReceivedEpisode], None],
        log: Callable[[str], object],
    ) -> None:
        self._listener, self._token, self._log = listener, token, log
        self._check, self._check_episode = check, check_episode
        self._changed = threading.Condition()
        self._checking = threading.Lock()
        self._robots = {name: _Robot(share) for name, share in shares.items()}
        for name, cursor in cursors.items():
            robot = self._robots[name]
            robot.taken, robot.learned, robot.saved = cursor, cursor.episodes, cursor.episodes
        self._newest: dict[type, Message] = {}
        self._closed = False
        listener.settimeout(0.5)
        self._thread = threading.Thread(target=self._accept, name="fleet intake", daemon=True)

    def start(self) -> None:
        """Begin to accept robots."""
        self._thread.start()

    # For the learner's thread.

    @property
    def connected(self) -> list[str]:
        """Robots that are connected."""
        with self._changed:
            return [name for name, robot in self._robots.items() if robot.connection is not None]

    def next(self, timeout: float) -> tuple[str, Received] | None:
        """Return a robot and what it sent next; None if nothing came within `timeout` [s]."""
        with self._changed:
            if not any(robot.queue for robot in self._robots.values()):
                self._changed.wait(timeout)
            waiting = [(robot.steps / robot.share, name) for name, robot in self._robots.items() if robot.queue]
            if not waiting:
                return None
            name = min(waiting)[1]
            robot = self._robots[name]
            received = robot.queue.popleft()
            if isinstance(received, ReceivedEpisode):
                robot.taken = received.cursor
                robot.steps += len(received.steps)
            self._changed.notify_all()
            return name, received

    def publish(self, message: Parameters | UpdateProgress) -> None:
        """Send this to all robots, now and when they connect; the newest of its kind counts."""
        with self._changed:
            self._newest[type(message)] = message
            outboxes = [robot.outbox for robot in self._robots.values() if robot.outbox is not None]
        content = encode(message)
        interval = len(outboxes) * max(len(content) / PARAMETERS_RATE, 1 / PARAMETERS_SETS)
        for outbox in outboxes:
            outbox.put(message, content, interval)

    def learned(self, name: str) -> None:
        """Report to a robot that the learner has learned from all that was taken."""
        with self._changed:
            robot = self._robots[name]
            robot.learned, outbox = robot.taken.episodes, robot.outbox
        if outbox is not None:
            outbox.put(self._standing(name))

    def saved(self, cursors: Mapping[str, Cursor], finished: Collection[str]) -> None:
        """Note how far the newest checkpoint is, and which robots finished in it; report it to them."""
        with self._changed:
            for name, cursor in cursors.items():
                self._robots[name].saved = cursor.episodes
                self._robots[name].finished = name in finished
            outboxes = {name: robot.outbox for name, robot in self._robots.items() if robot.outbox is not None}
        for name, outbox in outboxes.items():
            outbox.put(self._standing(name))

    def refuse(self, name: str, reason: str) -> None:
        """Refuse what a robot sent: the others go on, it ends with this reason."""
        self._log(f"{name}: {reason}")
        with self._changed:
            robot = self._robots[name]
            robot.refused = reason
            robot.queue.clear()
            if robot.outbox is not None:
                robot.outbox.put(RobotRefused(text=reason, final=True))
                robot.outbox.close()

    def close(self, failure: RobotRLError | None = None) -> None:
        """End all connections, with the reason if it is an error."""
        with self._changed:
            self._closed = True
            served = [(robot.connection, robot.outbox) for robot in self._robots.values()]
            self._changed.notify_all()
        for connection, outbox in served:
            if connection is None or outbox is None:
                continue
            if failure is not None:
                outbox.put(Failure(error=type(failure).__name__, text=str(failure)))
            outbox.close()
            outbox.ended.wait(BEAT)
            connection.hang_up()
        if self._thread.is_alive():
            self._thread.join()
        self._listener.close()

    # Other threads.

    def _accept(self) -> None:
        failing = False
        while not self._closed:
            try:
                stream, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError as error:  # e.g. too many open files, for a while; the robot tries again, too
                if not failing:
                    self._log(f"cannot accept robots: {error.strerror or error}; trying again")
                failing = True
                time.sleep(PARAMETERS_EVERY)
                continue
            failing = False
            threading.Thread(target=self._serve, args=(stream,), name="fleet robot", daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        """Serve one connection until it ends."""
        connection = Connection(stream, "robot")
        try:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            prove(stream, self._token, learner=True)
            stream.settimeout(SILENCE)
            hello = connection.receive()
            refusal = self._refusal(hello)
            if refusal is not None:
                connection.send(refusal)
                return
            if isinstance(hello, RobotHello):
                self._converse(connection, hello)
        except (PeerGoneError, OSError):
            pass  # `_converse` has reported a robot that is gone; others never were one
        except LinkError as error:
            self._log(f"a connection was refused: {error}")
            with contextlib.suppress(PeerGoneError):
                connection.send(RobotRefused(text=str(error), final=True))
        finally:
            connection.close()

    def _refusal(self, hello: Message) -> RobotRefused | None:
        """Return why a robot is not accepted, or None."""
        if not isinstance(hello, RobotHello):
            return RobotRefused(text=f"the first message is {type(hello).__name__}, expected RobotHello", final=True)
        robot = self._robots.get(hello.robot)
        if robot is None:
            valid = ", ".join(self._robots)
            return RobotRefused(text=f"the fleet has no robot {hello.robot!r}; its plan names {valid}", final=True)
        if robot.refused:
            return RobotRefused(text=robot.refused, final=True)
        with self._changed:
            if robot.connection is not None and robot.session != hello.session:
                text = f"{hello.robot} is connected already; each robot of a fleet has a name of its own"
                return RobotRefused(text=text, final=False)
        try:
            with self._checking:
                self._check(hello)
        except RobotRLError as error:
            self._log(f"{hello.robot} is refused: {error}")
            return RobotRefused(text=str(error), final=True)
        return None

    def _converse(self, connection: Connection, hello: RobotHello) -> None:
        name, outbox = hello.robot, _Outbox()
        robot = self._robots[name]
        with self._changed:
            if robot.connection is not None:
                robot.connection.hang_up()  # the same process, after its network was cut
            robot.connection, robot.outbox, robot.session = connection, outbox, hello.session
            robot.queue.clear()  # what was not taken comes again
            robot.finished = False  # it reports that again, too
            assembly = _Assembly(robot.taken)
            cursor, newest = robot.taken, list(self._newest.values())
        sender = threading.Thread(
            target=outbox.send_all, args=(connection, lambda: self._standing(name)), name=f"to {name}", daemon=True
        )
        try:
            connection.send(RobotAccepted(episodes=cursor.episodes, fingerprint=cursor.fingerprint))
            for message in newest:
                outbox.put(message)
            outbox.put(self._standing(name))
            sender.start()
            self._log(f"{name} is connected; {cursor.episodes} episodes of it are learned")
            while not self._closed:
                message = connection.receive()
                received = assembly.add(message) if isinstance(message, EpisodePart) else message
                if received is not None and not isinstance(received, RobotBeat):
                    self._queue(name, connection, received)
        except PeerGoneError as error:
            self._log(f"{name} is gone ({error}); the others go on")
        except RobotRLError as error:
            self.refuse(name, f"what it sent is refused: {error}")
        finally:
            outbox.close()
            if sender.is_alive():
                sender.join(SILENCE)
            with self._changed:
                if robot.connection is connection:
                    robot.connection = robot.outbox = None

    def _queue(self, name: str, connection: Connection, received: Message | ReceivedEpisode) -> None:
        """Queue what a robot sent, if the learner can take it.

        Raises:
            RobotRLError: if it cannot, or the robot sent more than it may.
        """
        if isinstance(received, ReceivedEpisode):
            self._check_episode(name, received)
        elif not isinstance(received, EpisodeLabel | EpisodeRewards | RobotFinished):
            raise LinkError(f"a fleet does not accept the message {type(received).__name__}")
        robot = self._robots[name]
        with self._changed:
            if robot.connection is not connection:
                return  # another one of the same robot has taken its place, and sends this again
            if sum(isinstance(one, ReceivedEpisode) for one in robot.queue) > CREDIT:
                raise LinkError(f"more than {CREDIT} episodes ahead of the learner; run the same robot_rl on both")
            robot.queue.append(received)
            self._changed.notify_all()

    def _standing(self, name: str) -> EpisodesLearned:
        with self._changed:
            robot = self._robots[name]
            return EpisodesLearned(learned=robot.learned, saved=robot.saved, finished=robot.finished)
