"""The link over a wire that loses, repeats, delays and reorders, between processes that end and come back."""

import os

import numpy as np
import pytest

from robot_rl.errors import LinkError
from robot_rl.link.frame import PIECE, VERSION, WireFrame, WireFrameKind, pack, unpack
from robot_rl.link.reliable_stream import RESEND_AFTER, WINDOW, Spool, Stream


class Time:
    now = 0.0

    def __call__(self):
        return self.now


class Wire:
    """Two ends and what is between them; everything random follows from the seed."""

    def __init__(self, folder, seed=0, loss=0.0, repeat=0.0, delay=0):
        self.rng, self.time, self.folder = np.random.default_rng(seed), Time(), folder
        self.loss, self.repeat, self.delay, self.cut = loss, repeat, delay, False
        self.flying = []  # (due, number, to, frame)
        self.sent = 0
        self.ends, self.got, self.met = {}, {}, {}
        self.full = lambda: False

    def add(self, name, **options):
        """A new process of that name; the one before is gone."""
        self.got[name], self.met[name] = [], 0
        got = self.got[name]

        def deliver(content):
            if self.full():
                return False
            got.append(content)
            return True

        def meet():
            self.met[name] += 1
            if options.get("forget"):
                got.clear()

        spool = Spool(self.folder)
        send = self.sender(name)
        self.ends[name] = Stream(send, deliver, meet, spool, clock=self.time, **options)
        return self.ends[name]

    def sender(self, name):
        def send(frame):
            self.sent += 1
            if self.cut or self.rng.random() < self.loss:
                return
            for _ in range(1 + (self.rng.random() < self.repeat)):
                due = self.time.now + 0.001 * self.rng.integers(self.delay + 1)
                self.flying.append((due, len(self.flying) + self.sent, name, frame))

        return send

    def run(self, seconds, until=lambda: False):
        for _ in range(round(seconds / 0.005)):
            if until():
                return True
            self.time.now += 0.005
            for end in self.ends.values():
                while end.pump():
                    pass
            due = sorted(entry for entry in self.flying if entry[0] <= self.time.now)
            self.flying = [entry for entry in self.flying if entry[0] > self.time.now]
            for _, _, origin, frame in due:
                for name, end in self.ends.items():
                    if name != origin:
                        end.on_frame(frame)
        return until()


def message(number, size=40):
    return number.to_bytes(4, "big") + bytes([number % 251]) * size


def numbers(contents):
    return [int.from_bytes(content[:4], "big") for content in contents]


@pytest.fixture
def wire(tmp_path):
    return Wire(tmp_path)


def test_messages_arrive_in_order_and_the_other_side_says_so(wire):
    actor = wire.add("actor")
    wire.add("learner", forget=True)
    for number in range(100):
        actor.post(message(number))
    assert wire.run(5, until=lambda: actor.waiting == 0)
    assert wire.got["learner"] == [message(number) for number in range(100)]


def test_a_message_larger_than_a_piece_and_the_window_crosses_whole(wire):
    actor = wire.add("actor")
    wire.add("learner", forget=True)
    large = os.urandom(3 * WINDOW + 7)
    actor.post(large)
    actor.post(message(1))
    assert wire.run(10, until=lambda: len(wire.got["learner"]) == 2)
    assert wire.got["learner"] == [large, message(1)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_wire_does_each_message_arrives_once_and_in_order(tmp_path, seed):
    wire = Wire(tmp_path, seed, loss=0.25, repeat=0.25, delay=60)
    rng = np.random.default_rng(seed)
    actor, learner = wire.add("actor"), wire.add("learner", forget=True)
    wire.full = lambda: rng.random() < 0.2
    assert wire.run(20, until=lambda: actor.peer and learner.peer)
    sizes = [int(rng.choice([1, 100, PIECE - 4, PIECE, 3 * PIECE])) for _ in range(60)]
    for number, size in enumerate(sizes):
        actor.post(message(number, size))
        learner.post(message(1000 + number, 10))
        wire.run(0.02)
        assert wire.got["learner"] == [message(n, sizes[n]) for n in range(len(wire.got["learner"]))]
    assert wire.run(400, until=lambda: actor.waiting == learner.waiting == 0)
    assert wire.got["learner"] == [message(n, size) for n, size in enumerate(sizes)]
    assert numbers(wire.got["actor"]) == list(range(1000, 1060))


def test_what_was_posted_while_the_link_was_cut_arrives_afterwards(wire):
    actor = wire.add("actor")
    wire.add("learner", forget=True)
    actor.post(message(0))
    wire.run(1)
    wire.cut = True
    for number in range(1, 200):
        actor.post(message(number))
        wire.run(0.05)
    assert actor.waiting == 199
    wire.cut = False
    assert wire.run(5, until=lambda: actor.waiting == 0)
    assert numbers(wire.got["learner"]) == list(range(200))


def test_a_peer_that_comes_later_gets_everything(wire):
    actor = wire.add("actor")
    for number in range(50):
        actor.post(message(number))
    wire.run(1)
    wire.add("learner", forget=True)
    assert wire.run(5, until=lambda: actor.waiting == 0)
    assert numbers(wire.got["learner"]) == list(range(50))


def test_a_new_learner_gets_everything_again_and_the_actor_hears_of_it(wire):
    actor = wire.add("actor")
    wire.add("learner", forget=True)
    for number in range(50):
        actor.post(message(number))
    wire.run(2)
    wire.add("learner", forget=True)  # the first was killed
    actor.post(message(50))
    assert wire.run(5, until=lambda: actor.waiting == 0)
    assert numbers(wire.got["learner"]) == list(range(51))
    assert wire.met["actor"] == 2


def test_a_new_learner_gets_the_sum_and_what_came_after_it(wire):
    actor = wire.add("actor")
    wire.add("learner", forget=True)
    for number in range(50):
        actor.post(message(number))
    wire.run(2)
    actor.restart_from([message(900), message(901)])
    for number in range(50, 60):
        actor.post(message(number))
    wire.run(2)
    assert numbers(wire.got["learner"]) == list(range(60))  # the learner of that time is not told the sum
    wire.add("learner", forget=True)
    assert wire.run(5, until=lambda: len(wire.got["learner"]) == 12)
    assert numbers(wire.got["learner"]) == [900, 901, *range(50, 60)]
    actor.post(message(60))
    assert wire.run(5, until=lambda: actor.waiting == 0)
    assert numbers(wire.got["learner"])[-1] == 60


def test_the_sum_cannot_replace_what_has_not_arrived(wire):
    actor = wire.add("actor")
    actor.post(message(0))
    with pytest.raises(LinkError, match="1 messages have not arrived"):
        actor.restart_from([])


def test_a_new_actor_begins_a_new_conversation(wire):
    actor, learner = wire.add("actor"), wire.add("learner", forget=True)
    wire.run(1)
    actor.post(message(1))
    learner.post(message(2))
    wire.run(2)
    learner.post(message(3))  # was for the first actor
    actor = wire.add("actor")
    actor.post(message(10))
    assert wire.run(5, until=lambda: actor.waiting == 0)
    assert numbers(wire.got["learner"]) == [10]
    learner.post(message(4))
    assert wire.run(5, until=lambda: len(wire.got["actor"]) == 1)
    assert numbers(wire.got["actor"]) == [4]


def test_frames_of_a_process_that_was_replaced_do_not_count(wire):
    actor = wire.add("actor")
    first = wire.add("learner", forget=True)
    wire.run(1)
    learner = wire.add("learner", forget=True)
    wire.run(1)
    assert actor.peer == learner.session
    actor.on_frame(pack(WireFrame(WireFrameKind.PROGRESS, first.session, actor.session, 0, 0)))
    assert actor.peer == learner.session


def test_an_idle_link_is_quiet(wire):
    wire.add("actor")
    wire.add("learner", forget=True)
    wire.run(1)
    before = wire.sent
    wire.run(10)
    assert wire.sent - before < 100
    assert RESEND_AFTER < 1


@pytest.mark.parametrize("number", range(40))
def test_a_damaged_frame_is_refused(number):
    frame = pack(WireFrame(WireFrameKind.PIECE, 1, 2, 3, 0, 50, bytes(range(50))))
    rng = np.random.default_rng(number)
    damaged = bytearray(frame)
    damaged[rng.integers(44, len(frame))] ^= 1 << rng.integers(8)
    with pytest.raises(LinkError):
        unpack(bytes(damaged))
    with pytest.raises(LinkError):
        unpack(frame[: rng.integers(len(frame))])


def test_frames_of_another_version_and_of_absurd_size_are_refused():
    frame = bytearray(pack(WireFrame(WireFrameKind.PROGRESS, 1, 2, 3, 0)))
    frame[4] = VERSION + 1
    with pytest.raises(LinkError, match=rf"version {VERSION + 1}, this program reads {VERSION}"):
        unpack(bytes(frame))
    with pytest.raises(LinkError, match="allowed are"):
        unpack(pack(WireFrame(WireFrameKind.PIECE, 1, 2, 0, 0, 2**31, b"x")))


def test_a_spool_leaves_nothing_behind(tmp_path):
    spool = Spool(tmp_path)
    spool.append(b"one")
    spool.append(b"three")
    assert (len(spool), spool[0], spool[1], spool.size(1), spool.nbytes) == (2, b"one", b"three", 5, 8)
    spool.restart([b"four"])
    assert (len(spool), spool[0]) == (1, b"four")
    assert not list(tmp_path.iterdir())
    spool.close()
    spool.close()
