"""A Robotiq gripper against peers of both its lines, a serial port and the socket of its URCap."""

import time

import pytest
from arm_driver_contract import Host
from robotiq_peer import RobotiqPeer, UrcapPeer, crc

from robot_rl.arm.parts.modbus import crc16
from robot_rl.arm.parts.part import find_gripper
from robot_rl.arm.parts.robotiq import Robotiq, RobotiqConfig
from robot_rl.arm.parts.robotiq_urcap import RobotiqUrcap, RobotiqUrcapConfig
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError

pytestmark = pytest.mark.wall_clock


@pytest.fixture(params=["serial", "urcap"])
def peer(request, tmp_path):
    peer = RobotiqPeer(tmp_path / "tty") if request.param == "serial" else UrcapPeer()
    yield peer
    peer.end()


def open_gripper(peer, timeout=0.15):
    if isinstance(peer, RobotiqPeer):
        return Robotiq(RobotiqConfig(port=peer.link, timeout=timeout), Host())
    return RobotiqUrcap(RobotiqUrcapConfig(host="127.0.0.1", socket_port=peer.port, timeout=timeout), Host())


@pytest.fixture
def gripper(peer):
    gripper = open_gripper(peer)
    gripper.start()
    yield gripper
    gripper.close()


def eventually(condition, limit=10.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_the_crc_is_that_of_the_modbus_guide():
    assert crc16(bytes((0x02, 0x07))).hex() == "4112"  # its example
    assert crc16(bytes(range(50))) == crc(bytes(range(50)))


def test_it_closes_to_widths_and_reports_them(gripper, peer):
    assert (find_gripper("robotiq"), find_gripper("robotiq_urcap")) == (Robotiq, RobotiqUrcap)
    for width in (0.0, 0.04, 0.085):
        gripper.move(width)
        assert eventually(lambda width=width: gripper.width == pytest.approx(width, abs=4e-4))
    assert not gripper.faults()
    count = peer.requests
    gripper.move(0.085)
    time.sleep(0.2)
    assert peer.out[3] == 0
    assert peer.requests > count, "it is read all the time"


def test_it_stops_at_an_object_and_reports_its_width(gripper, peer):
    peer.object = 128
    gripper.move(0.0)
    assert eventually(lambda: gripper.width == pytest.approx(0.085 * (1 - 128 / 255), abs=4e-4))
    assert not gripper.faults()


def test_an_active_gripper_is_not_activated_again(gripper, peer):
    gripper.move(0.0)
    assert eventually(lambda: gripper.width == pytest.approx(0.0, abs=4e-4))
    gripper.close()
    again = open_gripper(peer)
    again.start()
    assert peer.activations == 1
    assert eventually(lambda: again.width == pytest.approx(0.0, abs=4e-4)), "it keeps what it holds"
    again.close()


def test_a_fault_is_named_stays_and_ends_with_consent(gripper, peer):
    peer.fault = 0x0E
    assert eventually(gripper.faults)
    assert gripper.faults() == ["the Robotiq gripper: its current is too large; free its fingers"]
    gripper.recover()
    time.sleep(0.1)
    assert not gripper.faults()
    gripper.move(0.02)
    assert eventually(lambda: gripper.width == pytest.approx(0.02, abs=4e-4))


def test_a_loss_of_power_is_named(gripper, peer):
    peer.powered = False
    assert eventually(gripper.faults)
    assert "the Robotiq gripper" in gripper.faults()[0]
    assert "does not answer" in gripper.faults()[0] and "check its" in gripper.faults()[0]
    with pytest.raises(ArmStoppedError, match="does not answer"):
        gripper.recover()
    peer.powered = True
    gripper.recover()
    assert not gripper.faults()


def test_one_that_is_not_there_is_named_before_anything_moves(peer):
    peer.powered = False
    with pytest.raises(RobotLostError, match=r"the Robotiq gripper (on|behind) .* does not answer"):
        open_gripper(peer, timeout=0.02)


def test_a_late_answer_is_not_taken_for_that_to_another_request(peer):
    gripper = open_gripper(peer, timeout=0.05)
    gripper.start()
    gripper.move(0.0)
    assert eventually(lambda: gripper.width == pytest.approx(0.0, abs=4e-4))
    peer.lag = 0.08
    assert eventually(gripper.faults)
    peer.lag = 0.0
    time.sleep(0.2)
    gripper.recover()
    time.sleep(0.2)
    assert gripper.width == pytest.approx(0.0, abs=4e-4) and not gripper.faults()
    gripper.close()


def test_the_address_of_the_controller_is_needed():
    with pytest.raises(ConfigError, match="host is missing"):
        RobotiqUrcap(RobotiqUrcapConfig(), Host())


def test_consent_does_not_carry_out_what_was_commanded_before_it(gripper, peer):
    peer.object = 128
    gripper.move(0.0)
    assert eventually(lambda: gripper.width == pytest.approx(0.085 * (1 - 128 / 255), abs=4e-4))
    peer.fault = 0x0E
    assert eventually(gripper.faults)
    peer.object = None  # a person has freed the fingers
    gripper.recover()
    time.sleep(0.5)
    assert gripper.width == pytest.approx(0.085 * (1 - 128 / 255), abs=4e-4)
    peer.powered = False
    assert eventually(gripper.faults)
    gripper.move(0.085)
    peer.powered = True
    gripper.recover()
    time.sleep(0.5)
    assert gripper.width == pytest.approx(0.085 * (1 - 128 / 255), abs=4e-4)
    gripper.move(0.0)
    assert eventually(lambda: gripper.width == pytest.approx(0.0, abs=4e-4)), "the next command counts"
