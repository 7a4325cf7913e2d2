"""An arm of LeRobot in another interpreter: a stand-in of LeRobot's API, whose robot can fail, hang and die.

With ROBOT_RL_LEROBOT_PYTHON, the Python of a real LeRobot, its own SO-101 runs against servos on a pseudo-terminal.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest, Host, Recorder
from peer_process import PeerProcess
from so101_peer import urdf_of_so101

from robot_rl.arm.driver import find_driver
from robot_rl.arm.lerobot.lerobot_arm import LeRobotArm, LeRobotArmConfig
from robot_rl.errors import ArmStoppedError, ConfigError
from robot_rl.geometry import Pose

pytestmark = pytest.mark.wall_clock

STAND_IN = Path(__file__).parents[2] / "support" / "lerobot_stand_in"
REAL = os.environ.get("ROBOT_RL_LEROBOT_PYTHON", "")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes what happens to the robot."""
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    path = tmp_path / "script.json"

    def write(**entries):
        part = path.with_suffix(".part")
        part.write_text(json.dumps(entries))
        part.rename(path)

    write()
    write.path = path
    return write


@pytest.fixture
def config(script, tmp_path):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(urdf_of_so101())

    def make(**settings):
        own = (f"port={script.path}", "id=one")
        facts = dict(python=sys.executable, robot="scripted_arm", settings=own, urdf=str(urdf), tip="tip", timeout=2.0)
        return LeRobotArmConfig(**(facts | settings))

    return make


@pytest.mark.slow
class TestStandIn(ArmDriverContract):
    @pytest.fixture
    def arm(self, config):
        assert find_driver("lerobot") is LeRobotArm
        return ArmUnderTest(lambda host: LeRobotArm(config(), host), gripper_width=0.08)


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lerobot")
    peer = PeerProcess("so101_peer.py", "feetech", folder / "tty")
    peer.folder = folder
    yield peer
    peer.end()


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="ROBOT_RL_LEROBOT_PYTHON names no Python with LeRobot")
class TestRealLeRobot(ArmDriverContract):
    """LeRobot's own SO-101 and Feetech's own library, against MuJoCo behind servos on a pseudo-terminal."""

    @pytest.fixture
    def arm(self, peer):
        from so101_peer import write_calibration

        peer.tell("support")  # LeRobot switches the torque off while it connects
        peer.tell("reset")
        write_calibration(peer.folder / "one.json")
        settings = (f"port={peer.folder}/tty", "id=one", f"calibration_dir={peer.folder}")
        config = LeRobotArmConfig(python=REAL, settings=settings, timeout=2.0)
        return ArmUnderTest(lambda host: LeRobotArm(config, host), gripper_width=0.08, reach=0.004)


@pytest.fixture
def arm(config):
    arm = LeRobotArm(config(), Host())
    seen = Recorder()
    arm.start(seen)
    assert seen.has("pose", 3)
    arm.seen = seen
    yield arm
    arm.close()


def eventually(condition, limit=20.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def climbs(arm):
    here = arm.seen.parts["pose"][-1][1]
    arm.move_to(Pose(here.position + np.array([0.0, 0.0, 0.02]), here.quaternion))
    return eventually(lambda: arm.seen.position[2] - here.position[2] > 0.015)


def test_an_error_of_the_robot_is_named_and_the_arm_goes_on_with_consent(arm, script):
    script(error="Failed to sync read 'Present_Position'")
    assert eventually(arm.faults)
    assert arm.faults() == ["LeRobot's scripted_arm: ConnectionError: Failed to sync read 'Present_Position'"]
    with pytest.raises(ArmStoppedError, match="Failed to sync read"):
        arm.recover()
    script()
    arm.recover()
    assert not arm.faults()
    assert climbs(arm)


@pytest.mark.parametrize(("what", "message"), [("die", "ended with exit code 3"), ("hang", "no answer within 2 s")])
def test_a_process_that_dies_or_hangs_is_named_and_started_again_with_consent(arm, script, what, message):
    script(**{what: True})
    assert eventually(arm.faults)
    assert any(message in fault for fault in arm.faults())
    script()
    arm.recover()
    assert not arm.faults()
    assert climbs(arm)


def test_a_robot_that_is_not_calibrated_is_refused_at_the_start(config, script):
    script(calibrated=False)
    arm = LeRobotArm(config(), Host())
    with pytest.raises(Exception, match=r"the robot is not calibrated.*lerobot-calibrate"):
        arm.start(Recorder())
    arm.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"python": ""}, "python: not set; name the Python in which LeRobot is installed"),
        ({"python": "/no/python"}, "python: /no/python; name the Python"),
        ({"robot": "scripted"}, "LeRobot has no robot scripted; it has scripted_arm; did you mean scripted_arm"),
        ({"settings": ("prot=/dev/x",)}, "scripted_arm has no setting prot; it has .*port"),
        ({"settings": ("port",)}, "an entry has to be NAME=VALUE, got 'port'"),
        ({"gripper_name": "jaw"}, "scripted_arm has no joint jaw; it has shoulder_pan, .*gripper"),
        ({"urdf": ""}, "the kinematics of scripted_arm are needed: `urdf`"),
        ({"joint_names": ("a", "b")}, "the joints are shoulder_pan, .*the arm has a, b"),
    ],
)
def test_what_is_wrong_with_a_setting_is_named_before_anything_moves(config, settings, message):
    with pytest.raises(ConfigError, match=message):
        LeRobotArm(config(**settings), Host())


def test_without_lerobot_that_is_said(config, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(ConfigError, match="No module named 'lerobot'"):
        LeRobotArm(config(), Host())
