"""The contracts over an SO-101: MuJoCo's physics behind servos on a pseudo-terminal, and the driver in this process."""

import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from in_process_arm import WIDE_CAP, WIDE_LIMITS, come_to_rest, robot_under_test
from peer_process import PeerProcess
from robot_io_contract import RobotIOContract

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import find_driver
from robot_rl.env.state_assembler import Freshness

pytestmark = pytest.mark.wall_clock

WIDTH = 0.08


@pytest.fixture(scope="module", params=["feetech", "dynamixel"])
def peer(request, tmp_path_factory):
    link = tmp_path_factory.mktemp(request.param) / "tty"
    peer = PeerProcess("so101_peer.py", request.param, link)
    yield peer, dict(port=str(link), servos=request.param, timeout=0.2)
    peer.end()


def make(peer):
    """Return what makes a driver of an arm that has just been switched on."""
    process, settings = peer
    process.tell("reset")
    So101 = find_driver("so101")
    return lambda host: So101(So101.Config(**settings), host)


@pytest.mark.slow
class TestSo101Driver(ArmDriverContract):
    @pytest.fixture
    def arm(self, peer):
        return ArmUnderTest(make(peer), gripper_width=WIDTH, reach=0.003, settle=lambda: peer[0].tell("settle"))


@pytest.mark.slow
class TestSo101(RobotIOContract):
    @pytest.fixture
    def robot(self, peer):
        io = ArmRobotIO(make(peer), WIDE_LIMITS, WIDE_CAP, freshness=Freshness(max_age=0.4))
        facts = dict(joints=5, gripper_width=WIDTH, reach=0.003, settle=1.0, patience=2.0, measures_wrench=False)
        try:
            robot = robot_under_test(io, lambda: peer[0].tell("power off"), **facts)
            peer[0].tell("settle")
            come_to_rest(robot)  # it sags a little when the torque comes on
            yield robot
        finally:
            io.close()  # where it did not come to rest, too: the next test opens the same port
