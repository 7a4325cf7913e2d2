"""A Net F/T sensor against a box of its own protocol."""

import time

import numpy as np
import pytest
from arm_driver_contract import Host
from net_ft_peer import PAGE, NetFtPeer, PageServer

from robot_rl.arm.parts.net_ft import NetFt, NetFtConfig, counts_per_unit
from robot_rl.arm.parts.part import find_wrench_sensor
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError

pytestmark = pytest.mark.wall_clock

FORCES = [1.0, -2.0, 3.0, 0.1, 0.2, -0.3]


@pytest.fixture
def peer():
    peer = NetFtPeer()
    yield peer
    peer.end()


@pytest.fixture
def make(peer):
    made = []

    def make(**settings):
        counts = dict(counts_per_newton=1e6, counts_per_newton_metre=1e6)
        sensor = NetFt(NetFtConfig(**(dict(address="127.0.0.1", port=peer.port) | counts | settings)), Host())
        sensor.seen = []
        made.append(sensor)
        sensor.start(lambda stamp, wrench: sensor.seen.append((stamp, wrench)))
        return sensor

    yield make
    for sensor in made:
        sensor.close()


def eventually(condition, limit=10.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_forces_arrive_with_rising_stamps(make, peer):
    assert find_wrench_sensor("net_ft") is NetFt
    peer.wrench = FORCES
    sensor = make()
    assert eventually(lambda: len(sensor.seen) > 50)
    assert sensor.seen[-1][1] == pytest.approx(FORCES, abs=1e-6)
    assert (np.diff([stamp for stamp, _ in sensor.seen]) > 0).all()
    assert sensor.lost == 0
    assert not sensor.faults()


def test_a_wrench_is_moved_to_the_tcp(make, peer):
    peer.wrench = [1.0, 0.0, 0.0, 0.0, 0.0, 0.5]
    sensor = make(rpy=(0.0, 0.0, np.pi / 2), offset=(0.0, 0.0, -0.1))
    # by hand: the force turns to y; 10 cm above the tcp, it turns the tool about x by +0.1 Nm
    assert eventually(lambda: sensor.seen)
    assert sensor.seen[-1][1] == pytest.approx([0.0, 1.0, 0.0, 0.1, 0.0, 0.5], abs=1e-6)


def test_lost_samples_are_counted(make, peer):
    sensor = make()
    peer.skip = 7
    assert eventually(lambda: sensor.lost == 7)


def test_a_silent_box_is_a_fault_until_there_is_consent_and_a_restarted_one_is_found_again(make, peer):
    sensor = make()
    peer.silent = True
    assert eventually(sensor.faults)
    assert "no forces come from the Net F/T box at 127.0.0.1" in sensor.faults()[0]
    with pytest.raises(ArmStoppedError, match="no forces come"):
        sensor.recover()
    requests = peer.requests
    peer.silent, peer.restart = False, True
    count = len(sensor.seen)
    assert eventually(lambda: len(sensor.seen) > count)
    assert peer.requests > requests
    assert sensor.faults(), "it stays until a person has consented"
    sensor.recover()
    assert not sensor.faults()


def test_a_status_of_the_box_is_named_and_its_samples_do_not_count(make, peer):
    sensor = make()
    assert eventually(lambda: sensor.seen)
    peer.status = 0x80020000
    assert eventually(sensor.faults)
    assert "reports the status 0x80020000" in sensor.faults()[0]
    count = len(sensor.seen)
    time.sleep(0.1)
    assert len(sensor.seen) <= count + 1


def test_no_box_is_named(make):
    with pytest.raises(RobotLostError, match=r"no forces come from the Net F/T box at 127.0.0.1, port 9;"):
        make(port=9)


@pytest.mark.parametrize(
    ("values", "counts"),
    [((1000000, 2000000, "N", "Nm"), (1e6, 2e6)), ((4448.2216, 1129.8483, "lbf", "lbf-in"), (1000.0, 10000.0))],
)
def test_counts_per_unit_are_read_from_the_box(values, counts):
    server = PageServer(PAGE.format(*values))
    found = counts_per_unit(NetFtConfig(address=server.address))
    assert found == pytest.approx(counts, rel=1e-6)
    server.end()


def test_a_page_that_is_not_understood_is_named():
    server = PageServer(PAGE.format(1, 1, "stone", "Nm"))
    with pytest.raises(ConfigError, match=r"no counts per unit that are understood \('stone'\); set counts_per_newton"):
        NetFt(NetFtConfig(address=server.address), Host())
    server.end()
    with pytest.raises(ConfigError, match=r"the Net F/T box does not show http://127.0.0.1:1/netftapi2.xml"):
        NetFt(NetFtConfig(address="127.0.0.1:1"), Host())
