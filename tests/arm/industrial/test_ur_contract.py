"""The contracts of drivers and of robots over `ur_rtde` and a controller that speaks its protocol."""

import os

import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from in_process_arm import WIDE_CAP, WIDE_LIMITS, robot_under_test
from robot_io_contract import RobotIOContract
from ur_peer import UrPeer

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import find_driver
from robot_rl.arm.industrial.isolated_ur import IsolatedUr
from robot_rl.arm.industrial.ur import UrConfig
from robot_rl.env.state_assembler import Freshness

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: pip install 'robot_rl[ur]'")

pytestmark = pytest.mark.wall_clock
OLD = 1.0
"""Largest age of a state [s]: a test shall not fail because its machine is busy."""


@pytest.fixture(scope="module")
def peer():
    made = UrPeer(f"127.20.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
    yield made
    made.close()


@pytest.fixture(scope="module")
def config(peer):
    return UrConfig(host=peer.address, watchdog=1.0, max_silence=1.0)


class TestDriver(ArmDriverContract):
    @pytest.fixture
    def arm(self, config):
        assert find_driver("ur") is IsolatedUr
        return ArmUnderTest(lambda host: IsolatedUr(config, host), reach=0.002)


@pytest.fixture(scope="module")
def io(config):
    made = ArmRobotIO(lambda host: IsolatedUr(config, host), WIDE_LIMITS, WIDE_CAP, freshness=Freshness(max_age=OLD))
    yield made
    made.close()


class TestRobot(RobotIOContract):
    @pytest.fixture
    def robot(self, io, peer):
        yield robot_under_test(io, lambda: peer.inject("freeze"), joints=6, settle=0.8, patience=2.0)
        peer.inject("thaw")
