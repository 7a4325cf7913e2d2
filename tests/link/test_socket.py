import contextlib
import socket
import struct
import threading
import time

import numpy as np
import pytest

from robot_rl.data.replay.percept import Percept
from robot_rl.errors import LinkError
from robot_rl.link.messages import Failure, Start, Stop, UpdateProgress, encode
from robot_rl.link.socket import Connection, Courier, PeerGoneError
from robot_rl.system.message_codec import MAX_MESSAGE


@pytest.fixture
def ends():
    """A connection, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    connection = Connection(ours, "learner")
    yield connection, theirs
    connection.close()
    theirs.close()


def framed(content):
    return struct.pack("<I", len(content)) + content


def progress(n):
    return UpdateProgress(env_steps=n, updates=0, update_to_data=0.0)


def until(happened, limit=10.0):
    deadline = time.monotonic() + limit
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_messages_arrive_whole_and_in_order_however_the_bytes_are_cut(ends):
    connection, theirs = ends
    stream = b"".join(framed(encode(progress(n))) for n in range(20))

    def send():
        for start in range(0, len(stream), 7):
            theirs.sendall(stream[start : start + 7])

    sender = threading.Thread(target=send)  # so many pieces may fill the buffers of the socket
    sender.start()
    assert [connection.receive().env_steps for _ in range(20)] == list(range(20))
    sender.join()


def test_a_message_larger_than_the_buffers_of_the_socket_crosses(ends):
    connection, theirs = ends
    row = np.arange(2**20, dtype=np.float32)
    sender = threading.Thread(target=Connection(theirs, "actor").send, args=(Start(percept=Percept(row)),))
    sender.start()
    np.testing.assert_array_equal(connection.receive().percept.state, row)
    sender.join()


@pytest.mark.parametrize(
    ("sent", "where"), [(b"", "between two"), (b"\x10\x00", "between"), (framed(b"x" * 9)[:-1], "middle")]
)
def test_an_end_of_the_stream_is_told_from_a_message(ends, sent, where):
    connection, theirs = ends
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(PeerGoneError, match=f"the learner has ended the connection .*{where}"):
        connection.receive()


def test_too_large_a_size_is_refused_before_anything_is_reserved(ends):
    connection, theirs = ends
    theirs.sendall(struct.pack("<I", 2**32 - 1))
    with pytest.raises(LinkError, match=rf"a message of the learner has 4294967295 bytes, allowed are {MAX_MESSAGE}"):
        connection.receive()


def test_garbage_is_refused(ends):
    connection, theirs = ends
    theirs.sendall(b"GET / HTTP/1.1\r\nHost: robot\r\n\r\n" * 100)
    with pytest.raises(LinkError, match=r"bytes, allowed are|malformed"):
        connection.receive()


def test_nobody_at_the_other_end(ends):
    connection, theirs = ends
    theirs.close()
    with pytest.raises(PeerGoneError, match="the learner is gone: Broken pipe"):
        connection.send(Stop())


@pytest.mark.parametrize("doing", ["receive", "send"])
def test_hanging_up_wakes_a_waiting_thread(ends, doing):
    connection, _ = ends
    work = (
        connection.receive if doing == "receive" else lambda: connection.send(Start(percept=Percept(np.zeros(10**6))))
    )
    ended = threading.Event()

    def run():
        with pytest.raises(PeerGoneError):
            work()
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    assert not ended.is_set()
    connection.hang_up()
    thread.join(5)
    assert ended.is_set()


@contextlib.contextmanager
def courier(connection, **kwargs):
    received, errors = [], []
    carrier = Courier(connection, received.append, errors.append, **kwargs)
    try:
        yield carrier, received, errors
    finally:
        carrier.close()


def test_a_courier_keeps_the_order_both_ways(ends):
    connection, theirs = ends
    peer = Connection(theirs, "actor")
    with courier(connection) as (carrier, received, _):
        for n in range(500):
            carrier.post(progress(n))
        assert [peer.receive().env_steps for _ in range(500)] == list(range(500))
        for n in range(500):
            peer.send(progress(n))
        until(lambda: len(received) == 500)
    assert [message.env_steps for message in received] == list(range(500))


def test_posting_never_waits_and_overflow_is_an_error(ends):
    connection, _ = ends  # nobody reads at the other end
    row = np.zeros(10**5)
    started = time.monotonic()
    with courier(connection, capacity=8) as (carrier, _, errors):
        with pytest.raises(LinkError, match="8 messages wait to be sent; the other side does not keep up"):
            for _ in range(20):
                carrier.post(Start(percept=Percept(row)))
        assert not errors
    assert time.monotonic() - started < 5


def test_a_courier_says_why_nothing_is_carried_any_more(ends):
    connection, theirs = ends
    with courier(connection) as (_, received, errors):
        Connection(theirs, "actor").send(Failure(error="X", text="y"))
        until(lambda: received)
        theirs.sendall(framed(b"garbage"))
        until(lambda: errors)
    assert "malformed message of 7 bytes" in str(errors[0])


def test_the_reason_of_a_peer_that_ends_arrives_although_more_is_being_sent_to_it():
    ours, theirs = socket.socketpair()
    received, errors, ended = [], [], threading.Event()
    peer = Connection(theirs, "actor")
    peer.send(Failure(error="DivergedError", text="the loss is nan"))
    peer.hang_up()

    def end(error):
        errors.append(error)
        ended.set()

    def slowly(message):
        time.sleep(0.3)  # in which the sending thread finds the connection closed
        received.append(message)

    courier = Courier(Connection(ours, "learner"), slowly, end)
    for _ in range(3):
        courier.post(Stop())
    assert ended.wait(5)
    courier.close()
    peer.close()
    assert [message.text for message in received] == ["the loss is nan"]
    assert len(errors) == 1
