"""A leader arm on a pseudo-terminal: a person at it takes over, leads, closes the gripper, and is unplugged."""

import time

import numpy as np
import pytest
from servo_peer import ServoPeer

from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.geometry import Pose
from robot_rl.teleop.device import DeviceError, DeviceLostError
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.leader.leader_arm import SETTINGS
from robot_rl.teleop.listing import list_devices, open_devices
from robot_rl.teleop.mapping import default_map

START = np.array([0.0, -0.6, 0.9, 0.9, 0.0])
MIDDLE, COUNT = 2050.0, 4096 / (2 * np.pi)
SPEC = TaskSpec("test", "", 100, 0.1, Workspace((-1.0,) * 3, (1.0,) * 3, 1.0, 1.0), gripper=True)


class Hand:
    """Moves the leader: joint positions [rad] and the gripper [counts], with their velocities."""

    load = (0.0,) * 6

    def __init__(self):
        self.joints, self.speed, self.jaw = START.copy(), np.zeros(5), 3000.0

    @property
    def position(self):
        return [*(MIDDLE + self.joints * COUNT), self.jaw]

    @property
    def velocity(self):
        return [*(self.speed * COUNT), 0.0]

    def step(self, dt, goals, stiffness):
        assert not any(stiffness), "a leader is limp"
        self.joints = self.joints + dt * self.speed


@pytest.fixture
def peer(tmp_path, monkeypatch):
    peer = ServoPeer("feetech", tmp_path / "tty", Hand()).start()
    settings = tmp_path / "leader.yaml"
    settings.write_text(f"port: {peer.link}\ntimeout: 0.15\n")
    monkeypatch.setenv(SETTINGS, str(settings))
    yield peer
    peer.end()


@pytest.fixture
def leader(peer):
    (leader,) = open_devices(["so101_leader"])
    yield leader
    leader.close()


class Holds:
    """Takes note of who holds the arm, as `Supervised` does."""

    def __init__(self):
        self.holders = set()

    def hold(self, who, why):
        self.holders.add(who)

    def release(self, who):
        self.holders.discard(who)


class Operator:
    """The leader in the control loop, and an arm that does what is wanted at once."""

    def __init__(self, leader):
        self.operator = DeviceOperator([(leader, default_map(leader.kind))], SPEC, Holds())
        self.tool = so101_chain().pose(START)

    def step(self):
        time.sleep(0.05)
        action = self.operator.act_at(self.tool)
        if action is not None:
            step = self.tool.matrix @ (SPEC.action_translation * action[:3])
            turn = Pose.from_rotvec(np.zeros(3), SPEC.action_rotation * action[3:6])
            self.tool = Pose(self.tool.position + step, (self.tool @ turn).quaternion)
        return action


def eventually(condition, limit=10.0):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
    return False


def test_the_arm_follows_a_leader_that_is_moved_and_is_left_when_it_rests(leader, peer):
    loop = Operator(leader)
    for _ in range(5):
        assert loop.step() is None, "a leader at rest leaves the policy in control"
    peer.body.speed = np.array([0.3, 0.0, 0.0, 0.0, 0.0])
    assert eventually(lambda: loop.step() is not None)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        loop.step()
    peer.body.speed = np.zeros(5)
    assert eventually(lambda: loop.step() is None)
    there = so101_chain().pose(peer.body.joints)
    assert np.linalg.norm(there.position - so101_chain().pose(START).position) > 0.03
    assert loop.tool.position == pytest.approx(there.position, abs=0.006)


def test_a_leader_elsewhere_does_not_take_over_and_that_is_shown(leader, peer, caplog):
    loop = Operator(leader)
    loop.step()
    loop.tool = Pose(loop.tool.position + np.array([0.0, 0.1, 0.0]), loop.tool.quaternion)
    peer.body.speed = np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    for _ in range(10):
        assert loop.step() is None
    assert "SO-101 leader is 10 cm" in caplog.text
    assert "bring it there to take over" in caplog.text
    assert leader.read().buttons[leader.buttons.index("aligned")] is False


def test_its_gripper_closes_and_opens_the_arms(leader, peer):
    loop = Operator(leader)
    peer.body.speed = np.array([0.3, 0.0, 0.0, 0.0, 0.0])
    assert eventually(lambda: loop.step() is not None)
    peer.body.jaw = 700.0
    assert eventually(lambda: (action := loop.step()) is not None and action[-1] == -1.0)
    assert eventually(lambda: (action := loop.step()) is not None and action[-1] == 0.0), "for a moment only"
    peer.body.jaw = 3000.0
    assert eventually(lambda: (action := loop.step()) is not None and action[-1] == 1.0)


def test_unplugged_it_is_lost_and_comes_back(leader, peer):
    leader.read()
    peer.unplug()

    def is_lost():
        try:
            leader.read()
        except DeviceLostError as error:
            return "SO-101 leader" in str(error) and ("is gone" in str(error) or "there is no" in str(error))
        return False

    assert eventually(is_lost)
    peer.plug()
    assert eventually(lambda: not is_lost())


def test_one_that_is_not_set_up_is_listed_with_the_cure(monkeypatch, tmp_path):
    monkeypatch.delenv(SETTINGS, raising=False)
    with pytest.raises(DeviceError, match="ROBOT_RL_LEADER has to be the path of a YAML file"):
        open_devices(["so101_leader"])
    rows = {row.kind: row for row in list_devices()}
    assert not rows["so101_leader"].ready
    assert "ROBOT_RL_LEADER" in rows["so101_leader"].remark
    settings = tmp_path / "leader.yaml"
    settings.write_text("prot: /dev/x\n")
    monkeypatch.setenv(SETTINGS, str(settings))
    with pytest.raises(DeviceError, match=r"the SO-101 leader cannot be used: .*prot"):
        open_devices(["so101_leader"])
