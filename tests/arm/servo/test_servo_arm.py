"""An SO-101 in MuJoCo behind its servos: it does not sink, and every fault is named, held and ended with consent."""

import subprocess
import sys
import time

import numpy as np
import pytest
from in_process_arm import WIDE_CAP, WIDE_LIMITS
from peer_process import PeerProcess

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.servo.servo_arm import ServoArm, ServoArmConfig, So101, So101Config
from robot_rl.clock import WallClock
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError, ConfigError
from robot_rl.geometry import Pose

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    link = tmp_path_factory.mktemp("so101") / "tty"
    peer = PeerProcess("so101_peer.py", "feetech", link)
    peer.link = str(link)
    yield peer
    peer.end()


@pytest.fixture
def arm(peer, request):
    peer.tell("reset")
    config = So101Config(port=peer.link, timeout=getattr(request, "param", 0.2))
    arm = ArmRobotIO(lambda host: So101(config, host), WIDE_LIMITS, WIDE_CAP, freshness=Freshness(max_age=0.3))
    while moves(peer) > 1e-4:
        pass
    yield arm
    arm.close()


def where(peer):
    return np.array([float(number) for number in peer.tell("where").split()])


def moves(peer, seconds=0.2):
    before = where(peer)
    time.sleep(seconds)
    return float(np.linalg.norm(where(peer) - before))


def act(arm, step):
    """Command the measured pose plus a step, as a policy does."""
    here = arm.read().T_base_tcp
    arm.command(Command(arm.wall.now(), 0.3, Pose(here.position + step, here.quaternion)))


def eventually(condition, limit=10.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def climb(arm, steps=5):
    for _ in range(steps):
        act(arm, (0, 0, 0.01))
        time.sleep(0.1)


def test_zero_actions_for_five_seconds_move_it_by_less_than_a_millimetre(arm, peer):
    before = where(peer)
    for _ in range(50):
        act(arm, np.zeros(3))
        time.sleep(0.1)
    assert np.linalg.norm(where(peer) - before) < 1e-3


def test_it_goes_where_it_is_commanded_and_reports_where_it_is(arm, peer):
    before, way = where(peer), np.array([0.02, 0.03, 0.05])
    target = Pose(arm.read().T_base_tcp.position + way, arm.read().T_base_tcp.quaternion)
    for _ in range(20):
        arm.command(Command(arm.wall.now(), 0.3, target))
        time.sleep(0.1)
    assert where(peer) == pytest.approx(before + way, abs=0.003)
    assert arm.read().T_base_tcp.position == pytest.approx(where(peer), abs=0.001)
    assert arm.read().wrench is None


def test_unplugged_it_stands_still_is_named_and_goes_on_with_consent(arm, peer):
    climb(arm)
    peer.tell("unplug")
    time.sleep(0.3)
    assert moves(peer, 0.5) < 1e-3
    assert eventually(lambda: arm.stopped)
    assert "is gone" in arm.stopped or "there is no" in arm.stopped
    peer.tell("plug")
    begin = time.monotonic()
    assert moves(peer, 0.5) < 1e-3, "to plug it in is no consent"
    arm.recover()
    assert time.monotonic() - begin < 10
    assert moves(peer) < 1e-3
    before = where(peer)
    assert eventually(lambda: arm.read() is not None)
    climb(arm)
    assert where(peer)[2] - before[2] > 0.01


def test_a_loss_of_power_is_named_and_torque_comes_back_with_consent_alone(arm, peer):
    climb(arm)
    peer.tell("power off")
    assert eventually(lambda: arm.stopped)
    assert "no servo answers" in arm.stopped
    assert "power supply" in arm.stopped
    time.sleep(0.5)  # it falls: hobby servos have no brakes
    peer.tell("power on")
    time.sleep(0.5)
    assert arm.stopped
    fallen = where(peer)
    arm.recover()
    assert np.linalg.norm(where(peer) - fallen) < 0.02, "it begins where it lies"
    before = where(peer)
    climb(arm)
    assert where(peer)[2] - before[2] > 0.01


def test_torque_that_went_without_a_missed_answer_is_named(arm, peer):
    climb(arm)
    peer.tell("reboot")
    assert eventually(lambda: arm.stopped, limit=3.0)
    assert "have no torque: their power failed" in arm.stopped
    arm.recover()
    assert arm.stopped is None


def test_an_overloaded_servo_is_named_and_goes_on_with_consent(arm, peer):
    climb(arm)
    peer.tell("trip 3")
    assert eventually(lambda: arm.stopped)
    assert "servo 3 (elbow_flex): it is overloaded; take the load off the joint" in arm.stopped
    arm.recover()
    assert arm.stopped is None


def test_a_voltage_that_sags_is_named_and_ends_with_consent_once_it_is_back(arm, peer):
    climb(arm)
    peer.tell("supply 3.7")
    assert eventually(lambda: arm.stopped)
    assert eventually(lambda: arm.stopped.startswith("servo 1 (shoulder_pan), servo 2 (shoulder_lift), servo 3 (elbow"))
    assert arm.stopped.count("its supply voltage is out of range; check the power supply and the plugs") == 1
    with pytest.raises(ArmStoppedError, match="its supply voltage is out of range"):
        arm.recover()
    peer.tell("supply 12")
    arm.recover()
    assert arm.stopped is None


@pytest.mark.parametrize("arm", [0.03], indirect=True, ids=["timeout 30 ms"])
def test_lost_and_late_answers_do_not_stop_it(arm, peer):
    peer.tell("drop 0.02")
    peer.tell("corrupt 0.01")
    before = where(peer)
    climb(arm, 10)
    assert arm.stopped is None
    assert where(peer)[2] - before[2] > 0.02


def test_a_second_process_on_the_arm_is_refused(arm, peer):
    code = (
        "from robot_rl.arm.servo.servo_arm import *; from robot_rl.clock import WallClock\n"
        f"open_joints(So101Config(port={peer.link!r}), WallClock())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is in use by another program" in other.stderr.splitlines()[-1]
    assert arm.stopped is None


def test_a_command_out_of_reach_is_approached_and_reported(arm, peer):
    far = Pose(np.array([0.9, 0.0, 0.3]), arm.read().T_base_tcp.quaternion)
    for _ in range(10):
        arm.command(Command(arm.wall.now(), 0.3, far))
        time.sleep(0.1)
    assert "a set-point is out of reach of the joints: the arm goes as near as it can" in arm.problems
    arm.stop()


def test_another_kind_of_arm_needs_its_urdf():
    class Host:
        wall, max_age, problem = WallClock(), 0.2, print

    with pytest.raises(ConfigError, match="a servo_arm needs its kinematics: `urdf`"):
        ServoArm(ServoArmConfig(), Host())
