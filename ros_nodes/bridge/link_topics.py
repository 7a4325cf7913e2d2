"""The link between actor and learner over two topics: `Stream` for its order and its losses, a thread that sends."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from array import array
from collections.abc import Callable, Iterable

from std_msgs.msg import UInt8MultiArray

from robot_rl.errors import LinkError, RobotRLError
from robot_rl.link.messages import Message, decode, encode
from robot_rl.link.reliable_stream import Spool, Stream
from robot_rl.link.socket import PeerGoneError
from ros_nodes.interface import topics
from ros_nodes.interface.topics import Topic
from ros_nodes.node.robot_node_base import RobotNode

TICK = 0.02
"""Longest time between two looks at what is due [s]."""
FAREWELL = 3.0
"""How long a last message may take [s]."""
QUEUE = 2000
"""Messages that a learner takes before it has learned from them; then the actor's side keeps them."""


class TopicStream:
    """A `Stream` over a topic each way.

    Args:
        node: Whose publisher and subscription.
        out: Topic to the peer.
        back: Topic from the peer.
        deliver: As for `Stream`; the same for `on_peer` and `forget`.
    """

    def __init__(
        self,
        node: RobotNode,
        out: Topic,
        back: Topic,
        deliver: Callable[[bytes], bool],
        on_peer: Callable[[], None],
        *,
        forget: bool,
    ) -> None:
        self._publisher = node.publisher(out)
        self._due, self._ended = threading.Event(), threading.Event()
        self.stream = Stream(self._send, deliver, on_peer, Spool(), forget=forget)
        node.subscribe(back, self._take)
        self._thread = threading.Thread(target=self._run, name=f"{out.name} sender", daemon=True)
        self._thread.start()

    def post(self, message: Message) -> None:
        """Return at once; the message will be sent.

        Raises:
            LinkError: if it may not cross.
        """
        self.stream.post(encode(message))
        self._due.set()

    def flush(self, timeout: float) -> bool:
        """Wait until all posted messages have arrived; return whether they have within `timeout` [s]."""
        end = time.monotonic() + timeout
        while self.stream.waiting and time.monotonic() < end:
            time.sleep(TICK)
        return self.stream.waiting == 0

    def close(self) -> None:
        """End the thread; doing it twice is fine."""
        self._ended.set()
        self._due.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._due.wait(TICK)
            self._due.clear()
            while self.stream.pump():
                pass

    def _send(self, frame: bytes) -> None:
        self._publisher.publish(UInt8MultiArray(data=array("B", frame)))

    def _take(self, message: UInt8MultiArray) -> None:
        self.stream.on_frame(bytes(message.data))
        self._due.set()  # what has arrived makes room for more


class LearnerOverTopics:
    """A `LearnerPeer` that is `learner_node`, here or on another machine; it may end and come back.

    Args:
        node: Of the actor.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self._link: TopicStream | None = None
        self._peers = 0

    def open(
        self,
        on_message: Callable[[Message], None],
        on_error: Callable[[RobotRLError], None],
        on_restart: Callable[[], None],
    ) -> None:
        """Start to carry; a learner that is not there yet receives everything when it is."""

        def deliver(content: bytes) -> bool:
            try:
                on_message(decode(content))
            except RobotRLError as error:
                on_error(error)
            return True

        def meet() -> None:
            self._peers += 1
            if self._peers > 1:
                self._node.get_logger().warning("the learner is a new one: it is told again what it needs")
                on_restart()

        self._link = TopicStream(self._node, topics.TO_LEARNER, topics.TO_ACTOR, deliver, meet, forget=False)

    def post(self, message: Message) -> None:
        """Put the message down, on the disk, until the learner has it."""
        self._open_link.post(message)

    def restart_from(self, messages: Callable[[], Iterable[Message]]) -> None:
        """From now on a new learner is told these; unless the present one is behind, then it stays as it was."""
        if self._open_link.flush(FAREWELL):
            contents = [encode(message) for message in messages()]
            with contextlib.suppress(LinkError):  # a new learner has come in between, and is told everything
                self._open_link.stream.restart_from(contents)

    def describe_end(self) -> str:
        """Do nothing: the link never ends for good."""
        return "the learner node is gone"

    @property
    def waiting(self) -> int:
        """Messages that the learner has not got yet."""
        return self._link.stream.waiting if self._link else 0

    def close(self, farewell: Message | None) -> None:
        """Says farewell, if there is time for it."""
        if self._link is None:
            return
        if farewell is not None:
            self._link.post(farewell)
            self._link.flush(FAREWELL)
        self._link.close()
        self._link = None

    @property
    def _open_link(self) -> TopicStream:
        if self._link is None:
            raise LinkError("the link to the learner is closed")
        return self._link


class Conversations:
    """What actors say to a learner, one actor after another. The link adds, in its thread; the learner takes."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | None] = queue.Queue()  # None: a new actor speaks from here on
        self._unserved = False  # whether what waits is of an actor that was not served yet

    @property
    def waiting(self) -> int:
        """Messages that were not looked at yet."""
        return self._queue.qsize()

    def add(self, content: bytes) -> bool:
        """Add a message of the newest actor; return False if there is no room."""
        if self._queue.qsize() >= QUEUE:
            return False
        self._queue.put(content)
        return True

    def begin(self) -> None:
        """Have a new actor speak from here on; what the one before it said is forgotten."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._queue.put(None)

    def next_actor(self) -> None:
        """Wait until there is an actor that was not served yet."""
        while not self._unserved:
            self._unserved = self._get() is None
        self._unserved = False

    def take(self) -> bytes:
        """Return the next message of the present actor, however long it takes.

        Raises:
            PeerGoneError: if another actor has taken its place.
        """
        content = self._get()
        if content is None:
            self._unserved = True  # its first words may wait already
            raise PeerGoneError("another actor has taken the place of this one")
        return content

    def _get(self) -> bytes | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._queue.get(timeout=0.5)  # in short waits, so that signals are heard


class ActorOverTopics:
    """What a `LearnerServer` talks to: one actor after another, each in a conversation of its own.

    Args:
        node: Of the learner.
    """

    def __init__(self, node: RobotNode) -> None:
        self._said = said = Conversations()
        self._link = TopicStream(node, topics.TO_ACTOR, topics.TO_LEARNER, said.add, said.begin, forget=True)

    @property
    def waiting(self) -> int:
        """Messages that were not looked at yet."""
        return self._said.waiting

    def next_actor(self) -> None:
        """Wait until there is an actor that was not served yet."""
        self._said.next_actor()

    def send(self, message: Message) -> None:
        """Return at once; the message will be sent to the present actor."""
        self._link.post(message)

    def receive(self) -> Message:
        """Return the next message of the present actor, however long it takes.

        Raises:
            PeerGoneError: if another actor has taken its place.
            LinkError: if what arrives is not a message.
        """
        return decode(self._said.take())

    def close(self) -> None:
        """End the link."""
        self._link.close()
