"""A base behind our own websocket: it plans there as it does here, and says in one line what it cannot use."""

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from base_policy_contract import TASK, BasePolicyContract, demonstrations, history, setup_of
from policy_server import PolicyServer
from websockets.sync.client import connect

from robot_rl.base_policy import server as client
from robot_rl.base_policy.contract import checked_chunk, make_base
from robot_rl.base_policy.openpi_messages import pack, unpack
from robot_rl.base_policy.serving import BaseServer, history_of
from robot_rl.errors import BasePolicyError

HERE = "127.0.0.1"


@pytest.fixture(scope="module")
def cloned():
    """A trained base of two observations and four actions."""
    base = make_base(setup_of("chunk"))
    base.train(demonstrations(), lambda done, total, logs: None)
    return base


@pytest.fixture
def server(cloned):
    made = BaseServer(lambda: cloned, HERE, 0, lambda line: None)
    thread = threading.Thread(target=made.serve)
    thread.start()
    yield made
    made.stop()
    thread.join()


@pytest.fixture
def setup(server):
    return setup_of("server", server.address)


@pytest.fixture
def base(setup):
    with closing(make_base(setup)) as made:
        yield made


class TestServedBase(BasePolicyContract):
    @pytest.fixture
    def setup(self, setup):
        return setup

    @pytest.fixture
    def base(self, base):
        return base


def test_it_plans_as_it_does_here(cloned, base):
    assert (base.spec.horizon, base.spec.history) == (cloned.spec.horizon, cloned.spec.history)
    assert base.spec.observations == cloned.spec.observations
    for length in (1, 2):
        there, here = (one.begin(3, None) or one.plan(history(length)) for one in (base, cloned))
        np.testing.assert_array_equal(there.actions, checked_chunk(here, cloned).actions)
        np.testing.assert_array_equal(there.stamps, here.stamps)


def test_a_client_of_others_sends_one_observation_and_gets_a_chunk(server, cloned):
    newest = {key: np.asarray(value, np.float64) for key, value in history(1)[0].observation.items()}
    with connect(server.address) as connection:
        facts = unpack(connection.recv())
        assert (facts["action_dim"], facts["action_horizon"], facts["identity"]) == (3, 4, cloned.identity)
        connection.send(pack({**newest, "prompt": TASK.instruction, "images/of_no_use": np.zeros((2, 2, 3), np.uint8)}))
        assert unpack(connection.recv())["actions"].shape == (4, 3)
    assert server.plans == 1


def test_what_cannot_be_used_is_answered_by_a_line_and_the_connection_stays(server):
    good = {key: np.asarray(value) for key, value in history(1)[0].observation.items()}
    refused = {
        "a request was a str; expected a map of observations": "hello",
        "observes state/way, state/width, and state/width did not come": {"state/way": good["state/way"]},
        r"expects state/way as numbers of shape (2,), or up to 2 of these, oldest first, got float64 of shape (3, 2)": {
            **good,
            "state/way": np.zeros((3, 2)),
        },
        "expects state/way as numbers": {**good, "state/way": "left"},
        "histories of different lengths: [1, 2]": {**good, "state/way": np.zeros((2, 2))},
        "seed=True of a request; expected a number": {**good, "seed": True},
        "seed=-1 of a request; expected a number from 0 on": {**good, "seed": -1},
    }
    with connect(server.address) as connection:
        connection.recv()
        for said, request in refused.items():
            connection.send(pack(request))
            answer = connection.recv()
            assert said in answer
            assert "\n" not in answer
        connection.send(b"\xc1")
        assert "no msgpack" in connection.recv()
        connection.send(pack(good))
        assert unpack(connection.recv())["actions"].shape == (4, 3)


def test_pictures_are_of_the_newest_observation_alone(cloned):
    class Seeing:
        name = "seeing"
        spec = cloned.spec.__class__({"images/front": (2, 2, 3), "state/way": (2,)}, 3, 1, 0.1, 4, history=2)

    way, picture = np.arange(4.0).reshape(2, 2), np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    first, second = history_of({"images/front": picture, "state/way": way}, Seeing())
    assert second.stamp - first.stamp == 100_000_000
    np.testing.assert_array_equal(second.observation["images/front"], picture)
    np.testing.assert_array_equal(np.stack([one.observation["state/way"] for one in (first, second)]), way)
    with pytest.raises(BasePolicyError, match=r"expects images/front as numbers of shape \(2, 2, 3\), got uint8"):
        history_of({"images/front": np.stack([picture, picture]), "state/way": way}, Seeing())


def test_a_base_that_fails_says_why_and_the_connection_stays(cloned, server, base, monkeypatch):
    base.begin(1, None)
    with monkeypatch.context() as failing, pytest.raises(BasePolicyError, match="RuntimeError: out of memory"):
        failing.setattr(cloned, "plan", out_of_memory)
        base.plan(history())
    assert base.plan(history()).actions.shape == (4, 3)


def out_of_memory(observed):
    raise RuntimeError("out of memory")


def test_a_server_that_was_started_again_begins_the_episode_anew_and_another_base_is_refused(cloned):
    first = BaseServer(lambda: cloned, HERE, 0, lambda line: None)
    thread = threading.Thread(target=first.serve)
    thread.start()
    port = int(first.address.rpartition(":")[2])
    other = make_base(setup_of("chunk"))
    other.train(demonstrations(count=2), lambda done, total, logs: None)
    with closing(make_base(setup_of("server", first.address))) as base:
        base.begin(7, None)
        planned = base.plan(history()).actions
        for makes, said in ((cloned, None), (other, "another base is served there now; bring that one back")):
            first.stop()
            thread.join()
            first = BaseServer(lambda makes=makes: makes, HERE, port, lambda line: None)
            thread = threading.Thread(target=first.serve)
            thread.start()
            with pytest.raises(BasePolicyError, match="its server is gone"):
                base.plan(history())
            if said is None:
                np.testing.assert_array_equal(base.plan(history()).actions, planned)
            else:
                with pytest.raises(BasePolicyError, match=said):
                    base.plan(history())
    first.stop()
    thread.join()


def test_a_base_that_takes_long_to_load_is_waited_for_and_named_if_it_takes_too_long(cloned, monkeypatch, caplog):
    monkeypatch.setattr(client, "CONNECT_LIMIT", 0.3)
    monkeypatch.setattr(client, "SOON", 0.2)

    def loaded():
        time.sleep(0.6)
        return cloned

    slow = BaseServer(loaded, HERE, 0, lambda line: None)
    thread = threading.Thread(target=slow.serve)
    thread.start()
    with closing(make_base(setup_of("server", slow.address))) as base:
        assert base.spec.horizon == cloned.spec.horizon
    assert "its server has not said yet what it serves; waiting for up to 299.8 s more" in caplog.text
    monkeypatch.setattr(client, "FACTS_LIMIT", 0.1)
    with pytest.raises(BasePolicyError, match=r"has not said within 0\.1 s what it serves; wait until it has loaded"):
        make_base(setup_of("server", slow.address))
    slow.stop()
    thread.join()


def silent(address):
    """Return a client that neither asks nor confirms that its connection ends."""
    host, port = address.removeprefix("ws://").split(":")
    made = socket.create_connection((host, int(port)))
    made.sendall(
        b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert b" 101 " in made.recv(4096)
    return made


def test_clients_that_do_not_answer_hardly_delay_the_end_and_nobody_is_let_in_any_more(cloned):
    made = BaseServer(lambda: cloned, HERE, 0, lambda line: None)
    thread = threading.Thread(target=made.serve)
    thread.start()
    clients = [silent(made.address) for _ in range(4)]
    started = time.monotonic()
    made.stop()
    time.sleep(0.3)
    with pytest.raises(ConnectionRefusedError):
        silent(made.address)
    thread.join()
    assert time.monotonic() - started < 8.0, "4 of them, 10 s each"
    for one in clients:
        one.close()


ENDLESS = """
import threading, time
from robot_rl.base_policy.contract import BasePolicy, BaseSpec
from robot_rl.base_policy.serving import BaseServer
from robot_rl.system.process import stop_on_signal

class Endless(BasePolicy):
    name, identity, spec = "endless", "1", BaseSpec({}, 3, 0, 0.1, 4)
    def plan(self, history):
        print("plans", flush=True)
        time.sleep(100.0)

server = BaseServer(Endless, "127.0.0.1", 0, lambda line: None)
print(server.address, flush=True)
with stop_on_signal(server.stop):
    server.serve()
"""


def test_a_second_ctrl_c_ends_the_process_also_while_a_base_plans():
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        with connect(process.stdout.readline().strip()) as connection:
            connection.recv()
            connection.send(pack({}))
            assert process.stdout.readline() == "plans\n"
            process.send_signal(signal.SIGINT)
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in process.communicate(timeout=20.0)[1]
    finally:
        process.kill()
        process.wait()


def test_an_address_that_is_taken_is_refused(server, cloned):
    port = int(server.address.rpartition(":")[2])
    with pytest.raises(BasePolicyError, match=f"cannot listen on {HERE}, port {port}: .*; choose another --host or"):
        BaseServer(lambda: cloned, HERE, port, lambda line: None)
    with pytest.raises(BasePolicyError, match="port 70000"):
        BaseServer(lambda: cloned, HERE, 70000, lambda line: None)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"observations": ["state/way"]}, r"says observations=\['state/way'\]; expected a shape for each name"),
        ({"observations": {"state/way": [5]}}, r"its state/way has shape \(5,\), that of line \(2,\)"),
        ({"observations": {"state/grip": [1]}}, "it needs state/grip, and line has state/way, state/width"),
        ({"arms": ["left", "right"]}, "it moves the arms left, right, and line has one arm"),
        ({"grippers": -1}, "grippers=-1; expected a number from 0 on"),
        ({"observation_history": 0}, "observation_history=0; expected a positive number"),
    ],
)
def test_facts_that_do_not_fit_the_task_are_refused(facts, said):
    other = PolicyServer(facts=facts)
    try:
        with pytest.raises(BasePolicyError, match=said):
            make_base(setup_of("server", other.address))
    finally:
        other.stop()
