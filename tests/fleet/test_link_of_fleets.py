"""The link of a fleet over real sockets: rows of real stores, in order and once, whoever restarts."""

import contextlib
import resource
import socket
import struct
import sys
import threading
import time

import numpy as np
import pytest
from tagged import PACKER, action, episode, percepts

from robot_rl.data.store.layout import EPISODES, SUFFIX
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.tail import Cursor, StoreTail
from robot_rl.errors import DataError, LinkError
from robot_rl.fleet.access import FleetAddress, fleet_token, prove
from robot_rl.fleet.intake import PARAMETERS_EVERY, Intake, ReceivedEpisode
from robot_rl.fleet.uplink import CREDIT, Uplink
from robot_rl.link.messages import (
    EpisodeLabel,
    EpisodesLearned,
    Parameters,
    RobotAccepted,
    RobotBeat,
    RobotFinished,
    RobotHello,
    UpdateProgress,
)
from robot_rl.link.socket import Connection

pytestmark = pytest.mark.wall_clock

TOKEN = "a token that is long enough"


def hello(name):
    return lambda session: RobotHello(robot=name, session=session, version="1", config={}, task={}, percepts={})


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as held:
        yield held


def address_of(listener):
    return FleetAddress("{}:{}".format(*listener.getsockname()))


def make_store(path, numbers, steps=3):
    store = EpisodeStore.create(path, {"task": "tagged"})
    for number in numbers:
        store.append(episode(number, steps, image_shape=(1, 1, 3)))
    return store


@contextlib.contextmanager
def robot(listener, path, name="arm1", token=TOKEN):
    lines = []
    uplink = Uplink(address_of(listener), token, hello(name), StoreTail(path), percepts, lines.append)
    uplink.lines = lines
    uplink.start()
    try:
        yield uplink
    finally:
        uplink.close()


class Learner:
    """Takes what comes, as a learner with a checkpoint does: what was not saved is forgotten when it is killed."""

    def __init__(self, listener, cursors=None, rows=(), *, shares=None, check=lambda hello: None, saves=True):
        self.rows, self.cursors, self.saves = list(rows), dict(cursors or {}), saves
        self.notes, self.finished, self.lines = [], set(), []
        self.pause, self.ended = threading.Event(), threading.Event()
        shares = shares or {"arm1": 1.0}
        refuse = lambda name, episode: None  # noqa: E731
        self.intake = Intake(listener.dup(), TOKEN, shares, self.cursors, check, refuse, self.lines.append)
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.intake.start()
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.ended.set()
        self.thread.join()
        self.intake.close()

    def run(self):
        while not self.ended.is_set():
            if self.pause.is_set():
                time.sleep(0.01)
                continue
            received = self.intake.next(0.05)
            if received is None:
                continue
            name, what = received
            if isinstance(what, ReceivedEpisode):
                self.rows += [(name, *map(float, step.action)) for step in what.steps]
                self.cursors[name] = what.cursor
                self.intake.learned(name)
                if self.saves:
                    self.intake.saved(self.cursors, self.finished)
            elif isinstance(what, RobotFinished):
                self.finished.add(name)
                self.intake.saved(self.cursors, self.finished)
            else:
                self.notes.append(what)


def eventually(true, limit=10.0):
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.005)


def tagged_rows(name, numbers, steps=3):
    return [(name, *map(float, action(number, t))) for number in numbers for t in range(steps)]


def test_rows_come_in_order_and_once_however_often_either_side_restarts(tmp_path, listener):
    rng = np.random.default_rng(0)
    cursors, rows, numbers = {}, [], []
    store = make_store(tmp_path / "arm1", [])
    for round_ in range(8):
        new = list(range(len(numbers), len(numbers) + 3))
        with Learner(listener, cursors, rows) as learner, robot(listener, tmp_path / "arm1") as uplink:
            for number in new:
                store.append(episode(number, 3, image_shape=(1, 1, 3)))
                uplink.wake()
            numbers += new
            wanted = rng.integers(len(rows), 3 * len(numbers) + 1)
            eventually(lambda learner=learner, wanted=wanted: len(learner.rows) >= wanted)
        # The learner is killed now, after a checkpoint of an earlier moment.
        kept = int(rng.integers(cursors.get("arm1", Cursor()).episodes, learner.cursors["arm1"].episodes + 1))
        tail = StoreTail(tmp_path / "arm1")
        tail.scan()
        cursors = {"arm1": Cursor(kept, tail.read(kept - 1)[1])} if kept else {}
        rows = learner.rows[: 3 * kept]
        assert rows == tagged_rows("arm1", range(kept)), round_
    with Learner(listener, cursors, rows) as learner, robot(listener, tmp_path / "arm1") as uplink:
        uplink.finish()
        assert uplink.wait(lambda standing: standing.finished, 10.0)
    assert learner.rows == tagged_rows("arm1", numbers)
    assert uplink.standing.saved == len(numbers)


def test_a_cut_network_changes_nothing(tmp_path, listener):
    """A relay between both drops every connection after some bytes."""
    make_store(tmp_path / "arm1", range(20))
    with socket.create_server(("127.0.0.1", 0)) as relay, Learner(listener) as learner:
        ended = threading.Event()
        thread = threading.Thread(target=_relay, args=(relay, listener.getsockname(), ended), daemon=True)
        thread.start()
        with robot(relay, tmp_path / "arm1") as uplink:
            uplink.finish()
            assert uplink.wait(lambda standing: standing.finished, 60.0)
        ended.set()
        thread.join()
    assert learner.rows == tagged_rows("arm1", range(20))
    assert any("lost" in line for line in uplink.lines)


def _relay(server, target, ended):
    rng = np.random.default_rng(1)
    server.settimeout(0.2)
    while not ended.is_set():
        with contextlib.suppress(TimeoutError):
            near, _ = server.accept()
            with near, socket.create_connection(target) as far:
                left = int(rng.integers(500, 6000))
                near.setblocking(False)
                far.setblocking(False)
                while left > 0 and not ended.is_set():
                    for one, other in ((near, far), (far, near)):
                        try:
                            piece = one.recv(400)
                        except BlockingIOError:
                            continue
                        except OSError:
                            left = 0
                            break
                        if not piece:
                            left = 0
                        with contextlib.suppress(OSError):
                            other.sendall(piece)
                        left -= len(piece)
                    time.sleep(0.0005)


def test_turns_follow_shares_and_a_robot_that_has_much_waits(tmp_path, listener):
    make_store(tmp_path / "arm1", range(30))
    make_store(tmp_path / "arm2", range(100, 110))
    with Learner(listener, shares={"arm1": 1.0, "arm2": 1.0}) as learner:
        learner.pause.set()
        with robot(listener, tmp_path / "arm1", "arm1"), robot(listener, tmp_path / "arm2", "arm2"):
            eventually(lambda: len(learner.intake.connected) == 2)
            time.sleep(0.5)
            learner.pause.clear()
            eventually(lambda: len(learner.rows) == 120)
    first = [name for name, *_ in learner.rows[: 2 * 3 * CREDIT]]
    assert first.count("arm2") == 3 * CREDIT  # each had sent what it may
    assert [row for row in learner.rows if row[0] == "arm1"] == tagged_rows("arm1", range(30))
    assert [row for row in learner.rows if row[0] == "arm2"] == tagged_rows("arm2", range(100, 110))


def test_parameters_go_to_all_and_late_labels_come_after_their_episode(tmp_path, listener):
    store = make_store(tmp_path / "arm1", [0])
    arrays = {"w": np.arange(3, dtype=np.float32)}
    with Learner(listener) as learner, robot(listener, tmp_path / "arm1") as uplink:
        learner.intake.publish(Parameters(updates=7, arrays=arrays))
        learner.intake.publish(UpdateProgress(env_steps=3, updates=7, update_to_data=1.0))
        eventually(lambda: uplink.inbox.progress.updates == 7)
        assert uplink.inbox.pop_parameters().arrays["w"].tolist() == [0, 1, 2]
        learner.pause.set()
        store.append(episode(1, 3, image_shape=(1, 1, 3)))
        uplink.note(EpisodeLabel(episode_id="episode-1", success=True))
        learner.pause.clear()
        eventually(lambda: learner.notes)
        assert len(learner.rows) == 6
    with Learner(listener, learner.cursors) as again, robot(listener, tmp_path / "arm1") as uplink:
        again.intake.publish(Parameters(updates=9, arrays=arrays))
        eventually(lambda: uplink.inbox.pop_parameters() is not None)
        assert again.rows == []


def test_however_often_parameters_are_published_a_robot_gets_the_newest_at_its_pace(listener):
    arrays, received = {"w": np.zeros(3, np.float32)}, []
    with Learner(listener) as learner, socket.create_connection(listener.getsockname()) as stream:
        prove(stream, TOKEN, learner=False)
        connection = Connection(stream, "learner")
        connection.send(hello("arm1")(1))
        connection.receive()
        eventually(lambda: learner.intake.connected)
        began = time.monotonic()
        for number in range(1, 501):
            learner.intake.publish(Parameters(updates=number, arrays=arrays))
            learner.intake.publish(UpdateProgress(env_steps=number, updates=number, update_to_data=1.0))
            time.sleep(0.001)
        while not received or getattr(received[-1], "updates", 0) < 500:
            received.append(connection.receive())
        due = 2 * ((time.monotonic() - began) / PARAMETERS_EVERY + 2)  # a set, and the counters with it
        beats = [message for message in received if not isinstance(message, Parameters | UpdateProgress)]
        assert len(received) - len(beats) <= due
        assert len(beats) <= 2, "it is not woken to find that nothing is due"


def test_another_store_under_the_same_name_is_refused(tmp_path, listener):
    make_store(tmp_path / "arm1", range(3))
    make_store(tmp_path / "other", range(10, 14))
    make_store(tmp_path / "short", range(1))
    with Learner(listener) as learner, robot(listener, tmp_path / "arm1"):
        eventually(lambda: len(learner.rows) == 9)
    for name, message in (("other", "is not the one that the learner has"), ("short", "holds 1 episodes, the learner")):
        with Learner(listener, learner.cursors), robot(listener, tmp_path / name) as uplink:
            eventually(lambda uplink=uplink: uplink.inbox.error is not None)
            assert message in str(uplink.inbox.error)


def test_a_robot_that_does_not_belong_is_refused_by_name_and_the_others_go_on(tmp_path, listener):
    make_store(tmp_path / "arm1", range(3))

    def check(hello):
        if hello.robot == "arm2":
            raise LinkError("arm2 has other cameras")

    with Learner(listener, shares={"arm1": 1.0, "arm2": 1.0}, check=check) as learner:
        with (
            robot(listener, tmp_path / "arm1", "arm9") as stranger,
            robot(listener, tmp_path / "arm1", "arm2") as other,
        ):
            eventually(lambda: stranger.inbox.error is not None and other.inbox.error is not None)
        assert "no robot 'arm9'; its plan names arm1, arm2" in str(stranger.inbox.error)
        assert "arm2 has other cameras" in str(other.inbox.error)
        with robot(listener, tmp_path / "arm1"):
            eventually(lambda: len(learner.rows) == 9)


def test_a_hello_that_is_not_understood_ends_the_robot_with_the_reason(tmp_path, listener):
    make_store(tmp_path / "arm1", range(1))
    odd = RobotHello(robot="arm1", session=1, version="1", config={"schedule": {0: 1}}, task={}, percepts={})
    with Learner(listener):
        uplink = Uplink(address_of(listener), TOKEN, lambda _: odd, StoreTail(tmp_path / "arm1"), percepts, print)
        uplink.start()
        eventually(lambda: uplink.inbox.error is not None)
        uplink.close()
    assert "the learner refuses this robot: malformed message" in str(uplink.inbox.error)


def test_two_robots_of_one_name_do_not_take_turns(tmp_path, listener):
    make_store(tmp_path / "arm1", range(3))
    with Learner(listener) as learner, robot(listener, tmp_path / "arm1"):
        eventually(lambda: len(learner.rows) == 9)
        with robot(listener, tmp_path / "arm1") as second:
            eventually(lambda: any("connected already" in line for line in second.lines))
            time.sleep(1.2)  # it tries again
            assert sum("connected already" in line for line in second.lines) == 1
        assert learner.intake.connected == ["arm1"]


def test_a_token_is_needed_and_both_sides_prove_it(tmp_path, listener, monkeypatch):
    make_store(tmp_path / "arm1", range(3))
    with Learner(listener) as learner:
        with robot(listener, tmp_path / "arm1", token="another one that is long") as uplink:
            eventually(lambda: uplink.inbox.error is not None)
            assert "another token" in str(uplink.inbox.error)
        with socket.create_connection(listener.getsockname()) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n" + bytes(80))
            eventually(lambda: any("no fleet of this version" in line for line in learner.lines))
        assert learner.rows == []
    near, far = socket.socketpair()
    thread = threading.Thread(target=prove, args=(near, TOKEN), kwargs={"learner": True})
    thread.start()
    prove(far, TOKEN, learner=False)
    thread.join()
    monkeypatch.delenv("ROBOT_RL_FLEET_TOKEN", raising=False)
    assert fleet_token(FleetAddress(":8490")) == ""
    with pytest.raises(Exception, match="can be reached by other machines: set ROBOT_RL_FLEET_TOKEN"):
        fleet_token(FleetAddress("0.0.0.0"))


def test_percepts_of_a_long_episode_come_in_parts(tmp_path, listener, monkeypatch):
    monkeypatch.setattr("robot_rl.fleet.uplink.PART_BYTES", 1000)
    make_store(tmp_path / "arm1", [4], steps=40)
    assert PACKER.size == 3
    with Learner(listener) as learner, robot(listener, tmp_path / "arm1"):
        eventually(lambda: len(learner.rows) == 40)
    assert learner.rows == tagged_rows("arm1", [4], steps=40)


def test_a_robot_gives_a_sign_of_life_also_while_the_learner_does(tmp_path, listener, monkeypatch):
    monkeypatch.setattr("robot_rl.fleet.uplink.BEAT", 0.1)
    make_store(tmp_path / "arm1", [])
    with robot(listener, tmp_path / "arm1"):
        stream, _ = listener.accept()
        prove(stream, TOKEN, learner=True)
        connection = Connection(stream, "robot")
        connection.receive()
        connection.send(RobotAccepted(episodes=0, fingerprint=""))
        for _ in range(20):  # more often than the robot's own signs are due
            connection.send(EpisodesLearned(learned=0, saved=0, finished=False))
            time.sleep(0.05)
        stream.settimeout(0.05)  # what has come meanwhile
        assert [type(connection.receive()) for _ in range(4)] == [RobotBeat] * 4
        connection.close()


def test_a_robot_that_is_cut_off_as_it_is_accepted_may_come_again(tmp_path, listener):
    make_store(tmp_path / "arm1", [1])
    cut = []

    def check(hello):
        if not cut:  # its reset is here before the answer is sent
            cut.append(True)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
            time.sleep(0.1)

    with Learner(listener, check=check) as learner:
        stream = socket.create_connection(listener.getsockname())
        prove(stream, TOKEN, learner=False)
        Connection(stream, "learner").send(hello("arm1")(1))
        eventually(lambda: cut)
        with robot(listener, tmp_path / "arm1"):
            eventually(lambda: learner.rows == tagged_rows("arm1", [1]))


def test_a_learner_that_runs_out_of_files_accepts_robots_again(tmp_path, listener):
    make_store(tmp_path / "arm1", [1])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Learner(listener) as learner:
        stream = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (stream.fileno() + 1, before[1]))
        try:
            stream.connect(listener.getsockname())
            eventually(lambda: any("cannot accept robots" in line for line in learner.lines))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            stream.close()
        with robot(listener, tmp_path / "arm1"):
            eventually(lambda: learner.rows == tagged_rows("arm1", [1]))


def test_several_threads_follow_a_store_that_grows(tmp_path):
    make_store(tmp_path / "arm1", [0])
    folder = tmp_path / "arm1" / EPISODES
    first = next(folder.glob(f"*{SUFFIX}"))
    tail, errors, ended = StoreTail(tmp_path / "arm1"), [], threading.Event()

    def scan():
        try:
            while not ended.is_set():
                tail.scan()
        except DataError as error:
            errors.append(error)

    threads = [threading.Thread(target=scan) for _ in range(4)]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for number in range(1, 200):
            (folder / first.name.replace("00000", f"{number:05d}")).write_bytes(b"")
            time.sleep(0.001)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(switching)
    assert errors == []
    assert tail.scan() == 200
