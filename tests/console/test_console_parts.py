"""The console's rules one by one: who holds control, who may come in, what is a message."""

import json
import re

import pytest
from fakes import fake_workcell
from hypothesis import example, given
from hypothesis import strategies as st

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.console.access.address import Address
from robot_rl.console.access.guard import Access
from robot_rl.console.access.rate_limit import RateLimit
from robot_rl.console.buttons import emergency_stop
from robot_rl.console.control_lease import HEARTBEAT, Lease, LeaseError
from robot_rl.console.metrics_text import exposition
from robot_rl.console.places import Places
from robot_rl.console.protocol import MAX_BYTES, BadMessageError, InputMessage, parse
from robot_rl.env.robot_io import Command
from robot_rl.env.supervision import E_STOP, PAUSE, Supervision
from robot_rl.errors import ConfigError


def after(clock, seconds):
    clock.sleep_until(clock.now() + round(seconds * NS_PER_S))


def test_one_page_holds_control_while_it_speaks():
    clock = FakeClock()
    lease = Lease(clock)
    with pytest.raises(LeaseError, match="nobody is in control"):
        lease.check(1)
    lease.take(1, "Anna")
    with pytest.raises(LeaseError, match="Anna is in control; ask them"):
        lease.take(2, "Ben")
    with pytest.raises(LeaseError, match="Anna is in control"):
        lease.beat(2)
    after(clock, HEARTBEAT)
    assert not lease.overdue
    lease.beat(1)
    after(clock, HEARTBEAT + 0.01)
    assert lease.overdue
    assert lease.give_back(2) is None
    assert lease.give_back(1).name == "Anna"
    assert not lease.overdue
    lease.take(2, "Ben")


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("", "127.0.0.1", 8480, True),
        (":9000", "127.0.0.1", 9000, True),
        ("localhost:0", "localhost", 0, True),
        ("[::1]:1", "::1", 1, True),
        ("0.0.0.0", "0.0.0.0", 8480, False),
        ("robot.lab:80", "robot.lab", 80, False),
    ],
)
def test_addresses(text, host, port, loopback):
    address = Address(text)
    assert (address.host, address.port, address.loopback) == (host, port, loopback)


@pytest.mark.parametrize("text", ["a:b", "host:99999", "http://host", "host/path", "[::1", "user@host"])
def test_what_is_no_address(text):
    with pytest.raises(ConfigError, match="is no address; expected HOST"):
        Address(text)


def test_a_token_is_needed_where_others_can_reach_the_console():
    assert Access(Address("")).token is None
    other = Access(Address("0.0.0.0"))
    assert len(other.token) >= 32
    assert other.knows(other.token)
    assert not other.knows("")
    assert not other.knows(other.token[:-1])
    assert Access(Address("0.0.0.0")).token != other.token
    assert not Access(Address(""), "secret").knows("")


@pytest.mark.parametrize(
    ("listens", "origin", "host", "allowed"),
    [
        ("", None, "127.0.0.1:8480", True),
        ("", "http://127.0.0.1:8480", "127.0.0.1:8480", True),
        ("", "http://localhost:8480", "localhost:8480", True),
        ("", "http://evil.example", "127.0.0.1:8480", False),
        ("", "http://127.0.0.1:9999", "127.0.0.1:8480", False),
        ("", "http://evil.example:8480", "evil.example:8480", False),  # a name that was rebound to this machine
        ("", "null", "127.0.0.1:8480", False),
        ("0.0.0.0", "https://robot.lab:8480", "robot.lab:8480", True),
        ("0.0.0.0", "https://evil.example", "robot.lab:8480", False),
    ],
)
def test_only_its_own_page_is_answered(listens, origin, host, allowed):
    assert Access(Address(listens)).same_origin(origin, host) == allowed


@given(st.none() | st.text(), st.text(), st.sampled_from(["", "0.0.0.0"]))
@example("http://[", "127.0.0.1", "")
@example(None, "a:b", "")
@example(None, "a:b", "0.0.0.0")
def test_a_header_is_allowed_or_not_or_malformed(origin, host, listens):
    try:
        allowed = Access(Address(listens)).same_origin(origin, host)
    except ConfigError as error:
        assert "\n" not in str(error)
        return
    Address(host)  # only what is an address is judged
    assert allowed in (True, False)
    assert not (allowed and not host)


@given(st.lists(st.sampled_from(["arrive", "admit", "leave", "take"]), max_size=60))
def test_who_comes_gets_a_place_and_who_is_in_control_keeps_it(events):
    lease = Lease(FakeClock())
    places, door, inside = Places(lease, at_door=3, inside=4), [], []
    for number, event in enumerate(events):
        if event == "arrive":
            door.append(number)
            gone = places.arrive(number)
            assert gone == (door.pop(0) if len(door) > 3 else None), "who has waited longest"
        elif event == "admit" and door:
            inside.append(door.pop())
            gone = places.admit(inside[-1])
            assert (gone is not None) == (len(inside) > 4)
            if gone is not None:
                assert lease.owner is None or gone != lease.owner.page
                assert gone != inside[-1]
                inside.remove(gone)
        elif event == "take" and inside and lease.owner is None:
            lease.take(inside[-1], "Anna")
        elif event == "leave" and inside:
            gone = inside.pop(0)
            lease.give_back(gone)
            places.leave(gone)
        assert places.taken == len(inside)


def test_messages_are_limited_in_the_long_run_and_at_once():
    clock = FakeClock()
    limit = RateLimit(clock, rate=100.0, burst=50.0)
    assert [limit.allows() for _ in range(60)].count(True) == 50
    after(clock, 0.1)
    assert [limit.allows() for _ in range(60)].count(True) == 10


GOOD = {"type": "input", "axes": [0.5, 0, 0, 0, 0, -1], "buttons": [True, False, False, False]}


def test_a_message_is_understood():
    message = parse(json.dumps(GOOD))
    assert isinstance(message, InputMessage)
    assert message.axes[0] == 0.5


@pytest.mark.parametrize(
    "message",
    [
        {**GOOD, "axes": [0.5]},
        {**GOOD, "axes": [2, 0, 0, 0, 0, 0]},
        {**GOOD, "axes": ["nan", 0, 0, 0, 0, 0]},
        {**GOOD, "buttons": [True]},
        {**GOOD, "more": 1},
        {"type": "shell", "what": "rm"},
        {"type": "note", "text": ""},
        {"type": "note", "text": "x" * (MAX_BYTES + 1)},
        [],
        None,
        1,
    ],
)
def test_what_is_no_message_says_why(message):
    with pytest.raises(BadMessageError):
        parse(json.dumps(message))


@given(
    st.text()
    | st.recursive(st.none() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(
        json.dumps
    )
)
def test_nonsense_raises_that_error_and_no_other(text):
    with pytest.raises(BadMessageError):
        parse(text)


METRICS_JOB = {"task": 'peg "a\\b"\n', "kind": "training", "env_steps": 900}
METRICS_STATE = {
    "phase": {"name": "learning"},
    "health": {"env_step": 123456789, "updates_per_s": 250.5, "utd": float("nan"), "q_mean": None},
    "holds": [{"name": "operator", "reason": "a button"}],
    "arm": {"speed": 0.25, "force": [3.0, 0.0, 4.0], "peak_force": None, "gripper": 0.08},
}
METRICS_EPISODES = [
    {"success": True, "assisted": False, "intervention_rate": 0.0},
    {"success": True, "assisted": True, "intervention_rate": 0.5},
    {"success": False, "assisted": False, "intervention_rate": 0.1},
    {"success": None, "assisted": False, "intervention_rate": None},
]
SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="(\\.|[^"\\\n])*"(,[a-z_]+="(\\.|[^"\\\n])*")*\})? -?[0-9.e+-]+')


def values(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_the_text_is_in_the_format_and_has_the_numbers():
    text = exposition(METRICS_JOB, METRICS_STATE, METRICS_EPISODES)
    for line in text.splitlines():
        assert line.startswith(("# HELP robot_rl_", "# TYPE robot_rl_")) or SAMPLE.fullmatch(line), line
    found = values(text)
    assert found["robot_rl_env_steps"] == "123456789"
    assert found['robot_rl_job_info{task="peg \\"a\\\\b\\"\\n",kind="training"}'] == "1"
    assert found['robot_rl_episodes_total{outcome="success"}'] == "2"
    assert found['robot_rl_episodes_total{outcome="not_known"}'] == "1"
    assert float(found["robot_rl_success_recent_ratio"]) == pytest.approx(1 / 3)
    assert float(found["robot_rl_intervention_recent_ratio"]) == pytest.approx(0.2)
    assert found["robot_rl_tcp_force_newtons"] == "5"
    assert found['robot_rl_hold_info{name="operator"}'] == "1"
    assert not {name for name in found if "q_mean" in name or "update_to_data" in name or "peak" in name}


def test_there_is_no_arm_and_no_episode_yet():
    found = values(exposition(METRICS_JOB, {**METRICS_STATE, "health": {}, "holds": [], "arm": None}, []))
    assert found["robot_rl_holds"] == "0"
    assert "robot_rl_success_recent_ratio" not in found


def test_the_release_of_an_emergency_stop_at_which_the_arm_failed_moves_nothing_either():
    cell = fake_workcell()
    supervision, own = Supervision(cell), cell.io.stop

    def fail():
        raise OSError("the connection was reset")

    cell.io.stop = fail
    with pytest.raises(OSError, match="reset"):
        emergency_stop(supervision, "emergency stop by Anna")
    cell.io.stop = own
    supervision.release(E_STOP)
    assert [hold.name for hold in supervision.holds] == [PAUSE]
    supervision.io.command(Command(cell.clock.now(), 0.3, cell.io.read().T_base_tcp))
    assert not cell.io.commands
