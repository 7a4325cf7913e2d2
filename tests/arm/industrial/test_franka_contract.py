"""The contract of robots over franky and franky-sim, which simulates the arm; and reflexes, which end with consent."""

import os
import time

import numpy as np
import pytest
from franka_peer import FrankaPeer
from in_process_arm import WIDE_CAP, WIDE_LIMITS, come_to_rest, robot_under_test
from robot_io_contract import RobotIOContract
from scripted_arm import eventually

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.industrial.franka import FrankaArm, FrankaConfig
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError, ConfigError

INSTALL = "pip install 'robot_rl[franka]' franky-sim==1.0.4"
pytest.importorskip("franky", reason=f"franky is not installed: {INSTALL}")
pytest.importorskip("franky_sim", reason=f"franky-sim is not installed: {INSTALL}")

pytestmark = pytest.mark.wall_clock
SLOWEST = 0.6
"""Simulated seconds per second below which nothing can be said [s/s]: the physics needs most of a core."""
OLD = 1.0
HAND = 0.1034
"""From the flange to between the fingers of the Franka Hand [m]."""


@pytest.fixture(scope="module")
def peer():
    made = FrankaPeer()
    if (speed := made.speed()) < SLOWEST:
        made.close()
        pytest.skip(f"franky-sim runs at {speed:.2f} of real time here, at least {SLOWEST} are needed")
    yield made
    made.close()


@pytest.fixture(scope="module")
def drivers():
    return []


@pytest.fixture(scope="module")
def io(peer, drivers):
    config = FrankaConfig(host=peer.address)

    def make(host):
        drivers.append(FrankaArm(config, host))
        return drivers[0]

    made = ArmRobotIO(make, WIDE_LIMITS, WIDE_CAP, freshness=Freshness(max_age=OLD))
    yield made
    made.close()


@pytest.mark.slow
class TestFranka(RobotIOContract):
    @pytest.fixture
    def robot(self, io):
        report, silent = io.parts.add, []

        def add(*measured):
            return True if silent else report(*measured)

        io.parts.add = add
        robot = robot_under_test(
            io, lambda: silent.append(True), joints=7, gripper_width=0.08, reach=0.004, settle=2.0, patience=6.0
        )
        come_to_rest(robot)
        yield robot
        io.parts.add = report


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "named"), [("reflex", "reflex"), ("estop", "stop is pressed")])
def test_a_stop_of_the_arm_is_named_and_ends_with_consent(io, peer, fault, named):
    peer.inject(fault)
    assert eventually(lambda: named in (io.stopped or "")), io.stopped
    if fault == "estop":
        with pytest.raises(ArmStoppedError, match="User Stop pressed"):
            io.recover()
        peer.inject("release")
    io.recover()
    assert io.stopped is None
    before = io.read().T_base_tcp.position
    assert eventually(lambda: io.read().T_base_tcp.position is not None)
    assert np.linalg.norm(io.read().T_base_tcp.position - before) < 5e-3


@pytest.mark.slow
def test_a_hand_that_does_not_answer_keeps_nobody_waiting_and_is_named(io, peer):
    """franky waits for the motion before, for ever; the lock that was held meanwhile is that of expiry and holds."""

    def command(width):
        here, began = io.read().T_base_tcp, time.monotonic()
        io.command(Command(time.time_ns(), 1.0, here, width))
        return time.monotonic() - began

    command(0.08)
    assert eventually(lambda: io.read().gripper_width > 0.07)
    peer.inject("hand silent")
    try:
        slowest = max(command(width) for width in (0.02, 0.06, 0.03))
        named = eventually(lambda: "the Franka Hand has not ended a motion for 4 s" in (io.stopped or ""), 8.0)
        stopped = io.stopped
        with pytest.raises(ArmStoppedError, match="the Franka Hand does not answer"):
            io.recover()
    finally:
        peer.inject("hand answers")
        io.recover()
    assert slowest < 0.3
    assert named, stopped
    assert io.stopped is None
    command(0.05)
    assert eventually(lambda: io.read().gripper_width == pytest.approx(0.05, abs=0.003))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="scheduling classes are those of Linux")
def test_whoever_connects_keeps_the_priority_that_it_had(io):
    """libfranka takes the highest for the thread that opens a motion; what that thread starts would inherit it."""
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_its_links_end_where_the_hand_begins(io):
    state = io.read()
    flange = io.links(state.joint_position)[-1]
    assert np.linalg.norm(state.T_base_tcp.position - flange) == pytest.approx(HAND, abs=2e-3)


def test_the_wrench_is_what_the_environment_exerts(io, peer):
    peer.inject("force 0 0 -7 0 0 0")
    assert eventually(lambda: io.read().wrench[2] == pytest.approx(-7.0, abs=0.2))
    peer.inject("force 0 0 0 0 0 0")


def test_the_driver_finds_out_what_state_its_arm_is_in(io, peer, drivers):
    def found():
        return {check.name: check for check in drivers[0].own_checks()}

    assert {check.severity for name, check in found().items() if name != "late cycles"} == {"ok"}, found()
    assert found()["load"].value == pytest.approx(0.73)
    for value, name, severity, cure in [
        ("control_command_success_rate 0.93", "commands in time", "note", "PREEMPT_RT"),
        ("control_command_success_rate 0.80", "commands in time", "fault", "PREEMPT_RT"),
        ("m_load 0.4", "load", "note", "set `payload`"),
        ("m_ee 0.0", "load", "fault", "choose the Franka Hand"),
    ]:
        peer.inject(f"state {value}")
        assert eventually(lambda name=name, severity=severity: found()[name].severity == severity), value
        assert cure in found()[name].cure and found()[name].limit, value
        peer.inject(f"state {value.split()[0]}")


def test_a_second_program_on_the_arm_is_refused(io, peer):
    with pytest.raises(ArmStoppedError, match="is in use by another program"):
        ArmRobotIO(lambda host: FrankaArm(FrankaConfig(host=peer.address), host), WIDE_LIMITS, WIDE_CAP)
    assert io.stopped is None


@pytest.mark.slow
def test_a_lost_connection_is_named_and_ends_with_consent(io, peer):
    peer.close()
    assert eventually(lambda: io.stopped)
    assert "the connection to the arm is lost" in io.stopped
    with pytest.raises(ArmStoppedError, match="no Franka control box"):
        io.recover()
    again = FrankaPeer()
    try:
        io.recover()
        assert io.stopped is None
        io.close()
    finally:
        again.close()


def test_what_cannot_be_a_control_box_is_one_line():
    def open_at(**settings):
        config = FrankaConfig(**settings)
        return ArmRobotIO(lambda host: FrankaArm(config, host), WIDE_LIMITS, WIDE_CAP)

    with pytest.raises(ConfigError, match="host is missing"):
        open_at()
    with pytest.raises(ConfigError, match="payload needs centre_of_mass"):
        open_at(host="127.0.0.1", payload=0.5)
    with pytest.raises(ArmStoppedError, match=r"no Franka control box \(FCI\) answers at 127\.99\.0\.1:1337"):
        open_at(host="127.99.0.1")
