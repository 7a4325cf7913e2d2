"""Servos as joints: no jump when the torque comes on, settings, faults, and a loss of power."""

import time

import numpy as np
import pytest
from servo_peer import ServoPeer

from robot_rl.arm.servo.servo_arm import ServoArmConfig, open_joints
from robot_rl.clock import WallClock
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError

pytestmark = pytest.mark.wall_clock

HERE = [1500.0, 1700.0, 1900.0, 2100.0, 2300.0, 2500.0]


def open_peer(peer, family, **settings):
    return open_joints(ServoArmConfig(port=peer.link, servos=family, timeout=0.15, **settings), WallClock())


@pytest.fixture
def peer(family, tmp_path):
    from servo_peer import LagBody

    peer = ServoPeer(family, tmp_path / "tty", LagBody(HERE))
    for servo in peer.servos.values():
        peer.protocol.set_goal(servo.memory, 2048)  # an old goal, far from where they are
    peer.start()
    yield peer
    peer.end()


@pytest.fixture
def joints(peer, family):
    joints = open_peer(peer, family)
    yield joints
    joints.close()


def test_nothing_moves_before_and_while_the_torque_comes_on(joints, peer):
    assert not any(servo.memory[peer.protocol.TORQUE] for servo in peer.servos.values())
    commanded = joints.engage()
    time.sleep(0.3)
    reading = joints.read()
    assert peer.body.position == pytest.approx(HERE, abs=1)
    assert reading.position == pytest.approx(commanded.position, abs=0.005)
    assert all(servo.memory[peer.protocol.TORQUE] for servo in peer.servos.values())


def test_servos_that_hold_already_keep_their_goals(joints, peer):
    for servo in peer.servos.values():
        servo.memory[peer.protocol.TORQUE] = 1
        peer.protocol.set_goal(servo.memory, 2000)
    commanded = joints.engage()
    assert [peer.protocol.goal(servo.memory) for servo in peer.servos.values()] == [2000] * 6
    low, high = joints.limits  # of a range whose middle is at 2050
    assert commanded.position == pytest.approx([-50 * 2 * np.pi / 4096] * 5, abs=1e-9)
    assert (low < commanded.position).all()
    assert (commanded.position < high).all()


def test_positions_and_opening_are_commanded_and_measured(joints, peer):
    joints.engage()
    wanted = np.array([0.1, -0.2, 0.3, -0.4, 0.5])
    joints.write(wanted, 0.25)
    time.sleep(0.5)
    reading = joints.read()
    assert reading.position == pytest.approx(wanted, abs=0.003)
    assert reading.opening == pytest.approx(0.25, abs=0.002)
    joints.write(np.full(5, 99.0), 1.0)
    time.sleep(0.1)
    assert peer.goals_seen[-1] == [3501, 3502, 3503, 3504, 3505, 3506]  # the ends of the calibrated ranges


def test_settings_are_written_once(joints, peer, family):
    written = [entry for entry in peer.written if entry[1] not in (40, 42, 55, 64, 116)]
    assert len(written) > 6
    peer.written.clear()
    joints.close()
    open_peer(peer, family).close()
    assert not peer.written


def test_settings_that_differ_while_the_arm_is_held_are_refused(joints, peer, family):
    joints.engage()
    joints.close()
    peer.servos[3].memory[7 if family == "feetech" else 9] = 99  # the return delay
    with pytest.raises(ArmStoppedError, match=r"settings of the servos differ \(return delay\).*support the arm"):
        open_peer(peer, family)


def test_an_overloaded_servo_is_named_relieved_and_goes_on_with_consent(joints, peer):
    joints.engage()
    joints.write(np.array([0.3, 0.0, 0.0, 0.0, 0.0]), None)
    time.sleep(0.5)
    peer.trip(1)
    joints.read()
    joints.read()
    (fault,) = [text for text in joints.faults() if "overloaded" in text]
    assert fault.startswith("servo 1 (shoulder_pan): it is overloaded; take the load off")
    count = len(peer.goals_seen)
    joints.write(np.zeros(5), None)
    assert len(peer.goals_seen) == count, "a stopped arm is not commanded"
    before = list(peer.body.position)
    joints.engage()
    time.sleep(0.2)
    joints.read()
    assert not joints.faults()
    assert peer.body.position == pytest.approx(before, abs=20)
    assert all(servo.memory[peer.protocol.TORQUE] for servo in peer.servos.values())


def test_a_short_loss_of_power_leaves_a_fault_until_there_is_consent(joints, peer):
    joints.engage()
    peer.power(False)
    with pytest.raises(RobotLostError, match="no servo answers"):
        joints.read()
    peer.power(True)
    joints.read()
    (fault,) = joints.faults()
    assert "shoulder_pan, shoulder_lift, elbow_flex, wrist_flex, wrist_roll, gripper have no torque" in fault
    joints.engage()
    joints.read()
    assert not joints.faults()


def test_a_fault_that_stays_is_raised(joints, peer):
    joints.engage()
    peer.mute = {4}
    with pytest.raises(RobotLostError, match=r"servo 4 \(wrist_flex\)"):
        joints.engage()


@pytest.mark.parametrize(
    "settings",
    [{"joint_ids": (1, 2, 3)}, {"gripper_id": 3}, {"joint_names": ("a", "b", "c", "d", "a")}],
)
def test_ids_that_do_not_fit_the_names_are_refused(peer, family, settings):
    with pytest.raises(ConfigError, match="every joint needs a name and an id of its own"):
        open_peer(peer, family, **settings)


def test_the_wrong_family_is_named(peer, family):
    other = "dynamixel" if family == "feetech" else "feetech"
    with pytest.raises(RobotLostError, match=f"are its servos {other}"):
        open_peer(peer, other)
