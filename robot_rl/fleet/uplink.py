"""The robot's end of the link to the learner of a fleet: it sends what the robot's own store holds, in order.

The store is the only source. The learner reports how far it has read, the link goes on from there, whoever restarted
and however often; so each row reaches the learner once, and what the learner has is always on the robot's disk too.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Episode
from robot_rl.data.store.tail import Cursor, StoreTail
from robot_rl.errors import LinkError, RobotRLError
from robot_rl.fleet.access import FleetAddress, prove
from robot_rl.link.inbox import Inbox
from robot_rl.link.messages import (
    EpisodeLabel,
    EpisodePart,
    EpisodeRewards,
    EpisodesLearned,
    Message,
    RobotAccepted,
    RobotBeat,
    RobotFinished,
    RobotHello,
    RobotRefused,
)
from robot_rl.link.socket import Connection, PeerGoneError

BEAT = 2.0
"""Longest time between two messages of one side [s]."""
SILENCE = 15.0
"""Time without any after which the other side is taken to be gone [s]."""
RETRY = 0.5
"""Between two attempts to connect [s]."""
CREDIT = 4
"""Episodes that may be sent beyond those that the learner has learned from; the others wait in the store."""
PART_BYTES = 4 * 2**20
"""Size of a part of an episode, about [bytes]."""


class Standing(NamedTuple):
    """Where a robot stands with its learner.

    Attributes:
        connected: Whether they are connected now.
        learned: Episodes of the robot's store that the learner has learned from.
        saved: Those in the learner's newest checkpoint.
        finished: Whether that also holds that the robot has finished.
    """

    connected: bool = False
    learned: int = 0
    saved: int = 0
    finished: bool = False


class Uplink:
    """Sends the episodes of one store to the learner of a fleet, from a thread of its own.

    Args:
        address: Where the learner listens.
        token: That both sides have.
        hello: Introduces the robot; its `session` is set here.
        tail: The robot's store.
        percepts: Returns the T + 1 percepts of an episode; called in the thread of the link.
        log: Receives a line when the link is made or lost.

    Attributes:
        inbox: What the learner sends: parameters and counters; its `error` ends the link for good.
    """

    def __init__(
        self,
        address: FleetAddress,
        token: str,
        hello: Callable[[int], RobotHello],
        tail: StoreTail,
        percepts: Callable[[Episode], Iterable[Percept]],
        log: Callable[[str], object],
    ) -> None:
        self._address, self._token, self._tail, self._percepts, self._log = address, token, tail, percepts, log
        self._hello = hello(secrets.randbits(63))
        self.inbox = Inbox()
        self._changed = threading.Condition()
        self._standing = Standing()
        self._notes: list[EpisodeLabel | EpisodeRewards] = []  # of episodes that were sent, or will be
        self._finished = self._closed = False
        self._due = False
        self._reported = False  # whether it was reported that there is no link
        self._thread = threading.Thread(target=self._run, name=f"uplink of {self._hello.robot}", daemon=True)

    # For the robot's thread.

    @property
    def standing(self) -> Standing:
        """Where the robot stands with its learner."""
        with self._changed:
            return self._standing

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def note(self, message: EpisodeLabel | EpisodeRewards) -> None:
        """Send a label or rewards after the episodes that are in the store by now, and again to a new learner."""
        with self._changed:
            self._notes.append(message)
        self.wake()

    def wake(self) -> None:
        """Look at the store now: it may have a new episode."""
        with self._changed:
            self._due = True
            self._changed.notify_all()

    def finish(self) -> None:
        """Report that nothing more will be played."""
        with self._changed:
            self._finished = True
        self.wake()

    def wait(self, done: Callable[[Standing], bool], timeout: float) -> bool:
        """Wait until `done` for at most `timeout` [s], or the link has ended; return whether it is done."""
        end = time.monotonic() + timeout
        with self._changed:
            while not done(self._standing):
                left = end - time.monotonic()
                if left <= 0 or self.inbox.error is not None:
                    return False
                self._changed.wait(min(left, 0.5))
        return True

    def close(self) -> None:
        """End the link; what was not sent stays in the store. A second call does nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    # The thread of the link.

    def _run(self) -> None:
        try:
            self._connect_again_and_again()
        finally:  # also where a thread ends by a defect: nobody may wait for it
            self._lost()

    def _connect_again_and_again(self) -> None:
        while not self._closed and self.inbox.error is None:
            try:
                with socket.create_connection((self._address.host, self._address.port), timeout=SILENCE) as stream:
                    self._serve(stream)
            except PeerGoneError as error:
                self._report(f"the link to the learner is lost: {error}; the robot goes on, its store keeps everything")
            except OSError as error:
                reason = error.strerror or str(error)
                self._report(f"no learner at {self._address} ({reason}); trying again until there is one")
            except RobotRLError as error:
                self.inbox.fail(error)
            self._lost()
            with self._changed:
                if not self._closed:
                    self._changed.wait(RETRY)

    def _lost(self) -> None:
        """Note that there is no link."""
        with self._changed:
            self._standing = self._standing._replace(connected=False)
            self._changed.notify_all()

    def _report(self, text: str) -> None:
        """Log why there is no link, once until there is one again."""
        if not self._reported and not self._closed:
            self._log(text)
        self._reported = True

    def _serve(self, stream: socket.socket) -> None:
        """Speak with the learner until the link is lost.

        Raises:
            PeerGoneError: when it is, or the connection fails meanwhile.
            RobotRLError: if the learner refuses the robot.
        """
        connection = Connection(stream, "learner")
        try:
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            prove(stream, self._token, learner=False)
            stream.settimeout(SILENCE)
        except OSError as error:
            raise PeerGoneError(error.strerror or str(error)) from error
        connection.send(self._hello)
        cursor = self._accepted(connection.receive())
        if cursor is None:
            return
        self._tail.check(cursor, "the learner")
        self._log(f"connected to the learner at {self._address}, which has {cursor.episodes} episodes of ours")
        self._reported = False
        with self._changed:
            self._standing = Standing(True, cursor.episodes, 0)
            self._changed.notify_all()
        receiver = threading.Thread(target=self._receive, args=(connection,), name="uplink receiver", daemon=True)
        receiver.start()
        try:
            self._send_all(connection, cursor.episodes)
        finally:
            connection.hang_up()
            receiver.join()
        if not self._closed and self.inbox.error is None:
            raise PeerGoneError("it has ended the connection")

    def _accepted(self, answer: Message) -> Cursor | None:
        """Return how far the learner has read; None if it cannot take the robot now."""
        match answer:
            case RobotAccepted():
                return Cursor(answer.episodes, answer.fingerprint)
            case RobotRefused(final=False):
                self._report(f"the learner does not take this robot now: {answer.text}; trying again")
                return None
            case RobotRefused():
                raise LinkError(f"the learner refuses this robot: {answer.text}")
            case _:
                raise LinkError(f"the learner answered {type(answer).__name__}, expected RobotAccepted")

    def _send_all(self, connection: Connection, sent: int) -> None:
        """Send episodes from place `sent` on, notes and signs of life, until the link ends."""
        noted, finished, beat_at = 0, False, time.monotonic() + BEAT
        while not self._closed and self._standing.connected and self.inbox.error is None:
            with self._changed:
                self._due = False
                notes, ends = list(self._notes), self._finished
            there = self._tail.scan()
            if sent < there and sent - self._standing.learned < CREDIT:
                for part in self._parts(sent):
                    connection.send(part)
                sent, beat_at = sent + 1, time.monotonic() + BEAT
                continue
            if sent == there:
                for message in notes[noted:]:
                    connection.send(message)
                noted = len(notes)
            if sent == there and ends and not finished:
                connection.send(RobotFinished(episodes=there))
                finished = True
            with self._changed:
                if not self._due and not self._closed and self._standing.connected:
                    self._changed.wait(max(0.0, beat_at - time.monotonic()))
            if time.monotonic() >= beat_at and not self._closed:  # by the clock: what the learner sends wakes us, too
                connection.send(RobotBeat(waiting=self._tail.scan() - sent))
                beat_at = time.monotonic() + BEAT

    def _parts(self, place: int) -> Iterator[EpisodePart]:
        """Return the episode at a place of the store, in parts of about `PART_BYTES`."""
        episode, fingerprint = self._tail.read(place)
        demonstration = bool(episode.metadata.get("demonstration"))
        steps = [Transition.of(episode.step(row)) for row in range(len(episode))]
        percepts = iter(self._percepts(episode))
        begun = next(percepts)
        images = 0 if begun.images is None else begun.images.nbytes
        at_once = max(1, PART_BYTES // (begun.state.nbytes + images + 200))
        for first in range(0, len(steps), at_once):
            rows = steps[first : first + at_once]
            seen = [percept for _, percept in zip(rows, percepts, strict=False)]
            yield EpisodePart(
                place=place,
                episode_id=episode.episode_id,
                fingerprint=fingerprint,
                demonstration=demonstration,
                length=len(steps),
                first=first,
                percepts=list(chain([begun], seen)) if first == 0 else seen,
                steps=rows,
            )

    def _receive(self, connection: Connection) -> None:
        try:
            while True:
                message = connection.receive()
                if isinstance(message, RobotRefused):
                    raise LinkError(f"the learner refuses what this robot sent: {message.text}")
                if isinstance(message, EpisodesLearned):
                    with self._changed:
                        self._standing = Standing(True, message.learned, message.saved, message.finished)
                        self._due = True  # it may make room for the next episode
                        self._changed.notify_all()
                else:
                    self.inbox.put(message)
        except PeerGoneError:
            pass
        except RobotRLError as error:
            self.inbox.fail(error)
        finally:
            self._lost()
