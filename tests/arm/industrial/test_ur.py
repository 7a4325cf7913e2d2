"""Faults of a UR arm, against a controller that speaks its protocol: when it stands, what is named, who ends it.

Its driver is isolated, as for users: one cut cable in ninety ends the process that ur_rtde is in.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from in_process_arm import WIDE_CAP, WIDE_LIMITS
from scripted_arm import eventually
from ur_peer import START, UrPeer, jacobian

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.industrial.isolated_ur import IsolatedUr
from robot_rl.arm.industrial.ur import UrConfig
from robot_rl.arm.industrial.ur_interfaces import Calls
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply, quat_to_matrix

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: pip install 'robot_rl[ur]'")

pytestmark = pytest.mark.wall_clock
WATCHDOG = 1.0
"""Of the controller [Hz]: it shall not stop the arm because the machine of the tests is busy; 10 Hz is the default."""
OLD = 1.0
"""Largest age of a state [s], for the same reason."""
SILENCE = 0.5
"""More than a busy machine takes for a state [s]; 0.1 s is the default."""
LATE = 0.02
"""Of the peer's processor [s]: after that its arm is no judge of where it was sent."""
SAME = 1e-6
"""What differs by rounding [m]."""
HOME = jacobian(START)[1][:3, 3]
"""Where the peer's arm begins [m]."""
FORCE = np.array([3.0, -4.0, 12.0])


@pytest.fixture(scope="module")
def peer():
    made = UrPeer(f"127.21.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
    yield made
    made.close()


def open_arm(peer, drivers=None, limits=WIDE_LIMITS, cap=WIDE_CAP, **settings):
    config = UrConfig(**{"host": peer.address, "watchdog": WATCHDOG, "max_silence": SILENCE, **settings})

    def make(host):
        made.append(IsolatedUr(config, host))
        return made[-1]

    made = [] if drivers is None else drivers
    return ArmRobotIO(make, limits, cap, freshness=Freshness(max_age=OLD))


@pytest.fixture(scope="module")
def shared(peer):
    io = open_arm(peer, payload=0.8, centre_of_mass=(0.0, 0.0, 0.05), tcp=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    yield io
    io.close()


@pytest.fixture
def io(shared, peer):
    for cure in ("mend", "release", "thaw", "remote"):
        peer.inject(cure)
    if shared.stopped:
        shared.recover()
    go_home(shared)
    return shared


def go_home(io):
    """Go back to where it began: the tests before have moved it, on a slow machine up to the end of its reach."""
    io.command(Command(io.wall.now(), 3.0, Pose(HOME, io.read().T_base_tcp.quaternion)))
    assert eventually(lambda: np.linalg.norm(io.read().T_base_tcp.position - HOME) < 2e-3)


def move(io, way=(0.0, 0.0, 0.05), ttl=3.0):
    here = io.read().T_base_tcp
    io.command(Command(io.wall.now(), ttl, Pose(here.position + way, here.quaternion)))


def start_program(peer, *lines):
    """Start another program that drives the arm."""
    head = ("import sys, time", "sys.path[:0] = sys.argv[2:]", "from test_ur import open_arm, move")
    program = "\n".join((*head, "class Peer: address = sys.argv[1]", *lines))
    tests = Path(__file__).parents[2]
    paths = [str(tests / name) for name in ("arm/industrial", "support", "support/peers", "contracts")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, peer.address, *paths], **pipes)


def moving(io):
    move(io, (0.0, 0.0, 0.1))
    assert eventually(lambda: np.linalg.norm(io.read().twist[:3]) > 0.02)


def stands(peer):
    """Return how long the arm moved on, in its own time [s], and how far [m]."""
    peer.report()
    time.sleep(0.6)
    report = peer.report()
    return report["still_after"], report["distance"]


@pytest.mark.parametrize(
    ("fault", "cure", "named"),
    [
        ("protective", "", "protective stop: the arm met more force"),
        ("estop", "release", "the emergency stop of the arm is pressed|the emergency stop is pressed"),
        ("cut", "mend", "silent|connection|program has ended|own process is lost"),
        ("freeze", "thaw", "silent for"),
        ("stop-program", "", "the controller's program has ended"),
    ],
)
def test_a_fault_in_motion_stops_the_arm_is_named_and_ends_with_consent(io, peer, fault, cure, named):
    moving(io)
    peer.inject(fault)
    assert eventually(lambda: io.stopped), fault
    after, way = stands(peer)
    limit = 0.3 + {"freeze": SILENCE, "cut": 1.0 / WATCHDOG}.get(fault, 0.0)  # they show by nothing but silence
    assert after <= limit, f"{fault}: still after {after:.2f} s, {1e3 * way:.0f} mm"
    assert any(part in io.stopped for part in named.split("|")), io.stopped
    if fault == "estop":
        with pytest.raises(ArmStoppedError, match="turn the emergency stop button"):
            io.recover()
    if cure:
        peer.inject(cure)
    began = time.monotonic()
    io.recover()
    assert time.monotonic() - began < 10.0
    assert io.stopped is None
    before = io.read().T_base_tcp.position
    time.sleep(0.3)
    assert np.linalg.norm(io.read().T_base_tcp.position - before) < 1e-3, "after recovery it holds"
    move(io)
    assert eventually(lambda: io.read().T_base_tcp.position[2] > before[2] + 0.01), "and follows commands"


def test_the_controller_knows_payload_and_tcp_and_that_we_may_die(io, peer):
    report = peer.report()
    assert report["payload"] == [0.8, 0.0, 0.0, 0.05]
    assert report["tcp"] == [0.0] * 6
    assert report["watchdog"] == WATCHDOG


def test_the_wrench_is_in_the_axes_of_the_tool_and_tared(io, peer):
    peer.inject("force 0 0 0 0 0 0")
    tare(io)
    peer.inject(f"force {FORCE[0]} {FORCE[1]} {FORCE[2]} 0 0 0")
    expected = quat_to_matrix(io.read().T_base_tcp.quaternion).T @ FORCE
    assert eventually(lambda: abs(np.linalg.norm(io.read().wrench[:3]) - np.linalg.norm(FORCE)) < 0.1)
    assert io.read().wrench[:3] == pytest.approx(expected, abs=0.1)
    tare(io)


def tare(io):
    time.sleep(0.6)
    assert io.tare()
    assert eventually(lambda: np.linalg.norm(io.read().wrench) < 0.1)


def test_a_second_program_is_refused_by_name_and_the_first_goes_on(io, peer):
    second = start_program(peer, "open_arm(Peer)")
    assert "no other program connected" in second.communicate(timeout=60)[1]
    before = io.read().T_base_tcp.position
    move(io)
    assert eventually(lambda: io.read().T_base_tcp.position[2] > before[2] + 0.01)


def test_no_random_command_leaves_the_limits(peer, shared):
    """Random set-points, lifetimes and stops: the controller is sent to nowhere outside the box, and so is the tcp.

    A controller that gets no processor sees set-points that hurry past, and overshoots; that is not ours to prevent.
    """
    shared.close()
    peer.inject("home")
    here = np.array(peer.report()["position"])
    low, high = here - 0.03, here + 0.03
    cap = ArmCap(cap_box_low=tuple(low), cap_box_high=tuple(high), cap_speed=3.0, cap_turn_rate=12.0)
    limits = CommandLimits(box_low=tuple(low), box_high=tuple(high), max_speed=0.2, max_age=OLD)
    guarded, rng, outside = open_arm(peer, limits=limits, cap=cap), np.random.default_rng(7), 0.0
    peer.inject("mark")
    end = time.monotonic() + 4.0
    try:
        while time.monotonic() < end:
            state = guarded.read()
            target = Pose(
                state.T_base_tcp.position + rng.normal(0.0, 0.05, 3),
                quat_multiply(state.T_base_tcp.quaternion, quat_from_rotvec(rng.normal(0.0, 0.05, 3))),
            )
            guarded.command(Command(guarded.wall.now(), float(rng.uniform(0.05, 1.0)), target))
            if rng.random() < 0.05:
                guarded.stop()
            p = state.T_base_tcp.position
            outside = max(outside, float(np.linalg.norm(p - np.clip(p, low, high))))
            time.sleep(0.02)
        report = peer.report()
        assert np.all(report["low"] >= low - SAME) and np.all(report["high"] <= high + SAME)
        if report["late"] < LATE:
            assert guarded.stopped is None
            assert outside < 0.005
            assert np.subtract(report["high"], report["low"]).min() > 0.03, "they went far enough to try it"
    finally:
        guarded.close()


def test_a_killed_process_leaves_an_arm_that_stands_still(peer, shared):
    shared.close()
    process = start_program(
        peer,
        "io = open_arm(Peer, watchdog=5.0)",
        "print('open', flush=True)",
        "while True: move(io, (0, 0, 0.03)); time.sleep(0.05)",
    )
    try:
        assert process.stdout.readline() == "open\n"
        assert eventually(lambda: peer.report()["running"] or process.poll() is not None)
        start = peer.report()["position"]
        assert eventually(lambda: np.linalg.norm(np.subtract(peer.report()["position"], start)) > 0.01)
        assert process.poll() is None
    finally:
        process.kill()
        _, said = process.communicate()
    assert not said
    peer.inject("mark")
    after, way = stands(peer)
    assert after <= 0.3, f"still after {after:.2f} s, {1e3 * way:.0f} mm"
    again = open_arm(peer)  # and the next process has it
    again.close()


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("local", "is in local control; switch it to remote control"),
        ("estop", "safety status is ROBOT_EMERGENCY_STOP; turn the emergency stop button"),
        ("protective", "safety status is PROTECTIVE_STOP"),
        ("model 10", r"arm is a UR10, the robot file says ur5e; check the address; or correct `model`"),
        ("version 5.4", r"runs PolyScope 5\.4; update PolyScope \(3\.3 and newer or 5\.6 and newer\)"),
    ],
)
def test_an_arm_that_is_not_ready_is_named_before_anything_moves(peer, shared, fault, named):
    shared.close()
    peer.inject(fault)
    try:
        with pytest.raises(ArmStoppedError, match=named):
            open_arm(peer, model="ur5e")
    finally:
        for cure in ("release", "remote", "version 5.15", "model 5"):
            peer.inject(cure)


def test_the_driver_finds_out_what_state_its_controller_is_in(peer, shared):
    shared.close()
    drivers = []
    io = open_arm(peer, drivers, model="ur5e", payload=0.8, centre_of_mass=(0.0, 0.0, 0.05))

    def found():
        return {check.name: check for check in drivers[0].own_checks()}

    assert {check.severity for name, check in found().items() if name != "late cycles"} == {"ok"}, found()
    assert found()["firmware"].value == 5.15
    assert found()["load"].value == 0.8
    for fault, name, severity, cure, mended in [
        ("model 10", "model", "fault", "check the address", "model 5"),
        ("version 5.4", "firmware", "fault", "update PolyScope", "version 5.15"),
        ("version 3.2", "firmware", "fault", "update PolyScope", "version 5.15"),
        ("local", "remote control", "fault", "switch it to remote control", "remote"),
        ("load 0.3", "load", "fault", "another program has set it", "load 0.8"),
        ("speed 0.1", "speed slider", "note", "move it to 100 %", "speed 1"),
        ("protective", "safety", "fault", "clear it at the pendant", "release"),
        ("estop", "mode", "fault", "release its brakes", "release"),
    ]:
        peer.inject(fault)
        assert eventually(lambda name=name, severity=severity: found()[name].severity == severity), fault
        check = found()[name]
        assert cure in check.cure and check.text and check.limit, fault
        peer.inject(mended)
    io.close()


def test_it_may_be_closed_while_its_cable_is_out(peer, shared):
    shared.close()
    io = open_arm(peer)
    moving(io)
    peer.inject("cut")
    assert eventually(lambda: io.stopped)
    began = time.monotonic()
    io.close()
    peer.inject("mend")
    assert time.monotonic() - began < 5.0


def test_a_call_that_never_returns_is_given_up_and_no_other_collides_with_it():
    calls, end = Calls(0.2), threading.Event()
    assert calls(lambda: 5, "a number") == 5
    with pytest.raises(ZeroDivisionError):
        calls(lambda: 1 / 0, "an error")
    for call in (end.wait, lambda: pytest.fail("two at once")):
        with pytest.raises(ArmStoppedError, match=r"not answered within 0.2 s: its end; .* then consent again"):
            calls(call, "its end")
    end.set()
    assert eventually(lambda: calls_again(calls))


def calls_again(calls):
    with contextlib.suppress(ArmStoppedError):
        return calls(lambda: True, "another")


def test_what_cannot_be_a_controller_is_one_line():
    class Nobody:
        address = "127.0.0.1"

    with pytest.raises(ArmStoppedError, match=r"no UR controller answers at 127\.0\.0\.1:29999"):
        open_arm(Nobody)
    with pytest.raises(ConfigError, match="host is missing"):
        ArmRobotIO(lambda host: IsolatedUr(UrConfig(), host), WIDE_LIMITS, WIDE_CAP)
    assert issubclass(ArmStoppedError, RobotLostError)
