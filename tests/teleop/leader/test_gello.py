"""A GELLO on a pseudo-terminal: its angles are the led arm's, by the signs and offsets of GELLO's own settings."""

import numpy as np
import pytest
import yaml
from scripted_arm import eventually
from servo_peer import ServoPeer

from robot_rl.arm.kinematics.urdf import chain_from_urdf
from robot_rl.teleop.device import DeviceError
from robot_rl.teleop.leader.gello import open_gello
from robot_rl.teleop.leader.leader_arm import SETTINGS

URDF = """<robot name="arm">
  <link name="base"/> <link name="upper"/> <link name="tool0"/>
  <joint name="pan" type="continuous">
    <parent link="base"/> <child link="upper"/> <origin xyz="0 0 0.1"/> <axis xyz="0 0 1"/>
  </joint>
  <joint name="lift" type="continuous">
    <parent link="upper"/> <child link="tool0"/> <origin xyz="0.3 0 0"/> <axis xyz="0 1 0"/>
  </joint>
</robot>
"""
ANGLES, SPEEDS = np.array([0.4, -0.7]), np.array([0.2, 0.1])
SIGNS, OFFSETS = np.array([1, -1]), np.array([np.pi / 2, 3 * np.pi / 2])
COUNT = 4096 / (2 * np.pi)


class Hand:
    """Holds it at `ANGLES` and moves it at `SPEEDS`; the trigger has closed by three quarters."""

    load = (0.0,) * 3
    position = (*((SIGNS * ANGLES + OFFSETS) * COUNT), np.deg2rad(20 - 0.75 * 40) * COUNT)
    velocity = (*(SIGNS * SPEEDS * COUNT), 0.0)

    def step(self, dt, goals, stiffness):
        pass


@pytest.fixture
def settings(tmp_path, monkeypatch):
    peer = ServoPeer("dynamixel", tmp_path / "tty", Hand(), idents=(1, 2, 7)).start()
    (tmp_path / "arm.urdf").write_text(URDF)
    tree = dict(port=peer.link, urdf=str(tmp_path / "arm.urdf"), joint_ids=[1, 2], joint_signs=SIGNS.tolist())
    tree |= dict(joint_offsets=OFFSETS.tolist(), gripper_config=[7, 20, -20])

    def write(**changes):
        file = tmp_path / "leader.yaml"
        file.write_text(yaml.safe_dump(tree | changes))
        monkeypatch.setenv(SETTINGS, str(file))

    write()
    yield write
    peer.end()


def test_its_angles_are_those_of_the_led_arm(settings, tmp_path):
    leader = open_gello()
    chain = chain_from_urdf(tmp_path / "arm.urdf", "tool0")
    tool = chain.pose(ANGLES)
    away = chain.pose(ANGLES + 0.03)
    try:
        leader.observe(away)  # aligned within 3 cm, and moved: it leads the arm back
        assert eventually(lambda: np.linalg.norm(leader.read().axes) > 0)
        axes = leader.read().axes[:3]
        way = tool.position - away.position
        assert axes / np.linalg.norm(axes) == pytest.approx(way / np.linalg.norm(way), abs=0.05)
        assert leader.read().buttons[leader.buttons.index("close")]
    finally:
        leader.close()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"joint_signs": [1, -1, 1]}, "joint_ids are 2, joint_offsets 2, joint_signs 3"),
        ({"joint_signs": [1, 0]}, "joint_signs are 1 or -1"),
        ({"gripper_config": [7, 20]}, "gripper_config is an id and two different angles"),
        ({"gripper_config": [2, 20, -20]}, "an id of its own"),
        ({"joint_ids": [1], "joint_signs": [1], "joint_offsets": [0.0]}, "joint_ids are 1, the arm has 2 joints: pan"),
        ({"joint_ids": [1, 5]}, r"servo 5 \(joint 2\).*does not answer"),
        ({"urdf": ""}, "needs the kinematics of its arm: `urdf`"),
        ({"port": "/dev/null"}, "is no serial port"),
    ],
)
def test_wrong_settings_are_one_line(settings, changes, named):
    settings(**changes)
    with pytest.raises(DeviceError, match=named):
        open_gello()
