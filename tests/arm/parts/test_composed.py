"""The driver `composed`, by its settings."""

import pytest
from arm_driver_contract import Host, Recorder
from net_ft_peer import NetFtPeer
from robotiq_peer import RobotiqPeer
from servo_peer import ServoPeer

from robot_rl.arm.driver import find_driver
from robot_rl.errors import ConfigError, RobotLostError, UnknownNameError


@pytest.fixture
def make(tmp_path):
    def make(**settings):
        Composed = find_driver("composed")
        arm = dict(arm="so101", arm_settings=(f"port={tmp_path}/servos", "timeout=0.2"))
        return Composed(Composed.Config(**(arm | settings)), Host())

    return make


def test_an_so101_with_a_robotiq_gripper_and_a_net_ft_sensor(make, tmp_path):
    servos = ServoPeer("feetech", tmp_path / "servos").start()
    gripper, sensor = RobotiqPeer(tmp_path / "gripper"), NetFtPeer()
    sensor.wrench = [0.0, 0.0, 5.0, 0.0, 0.0, 0.0]
    counts = ("counts_per_newton=1e6", "counts_per_newton_metre=1e6")
    arm = make(
        gripper="robotiq",
        gripper_settings=(f"port={gripper.link}", "width=0.14", "timeout=0.2"),
        wrench="net_ft",
        wrench_settings=("address=127.0.0.1", f"port={sensor.port}", *counts),
        payload_mass=0.2,
        payload_center=(0.0, 0.0, 0.01),
    )
    seen = Recorder()
    arm.start(seen)
    arm.move_gripper(0.07)
    try:
        assert seen.has("wrench", 10)
        assert seen.wait(lambda: seen.parts["gripper"] and abs(seen.parts["gripper"][-1][1] - 0.07) < 1e-3)
        force = seen.parts["wrench"][-1][1][:3]
        pose = seen.parts["pose"][-1][1]
        assert pose.matrix @ (force - (0, 0, 5.0)) == pytest.approx([0.0, 0.0, 0.2 * 9.81], abs=0.05)
    finally:
        arm.close()
        servos.end()
        gripper.end()
        sensor.end()


def test_a_part_that_is_missing_releases_the_rest(make, tmp_path):
    servos = ServoPeer("feetech", tmp_path / "servos").start()
    for _ in range(2):  # a port that is still held would be named the second time
        with pytest.raises(RobotLostError, match=r"there is no .*/no"):
            make(gripper="robotiq", gripper_settings=(f"port={tmp_path}/no",))
    servos.end()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"arm": ""}, ConfigError, "arm: not set; name the driver of the arm itself"),
        ({"arm": "composed"}, ConfigError, "arm: composed; name the driver of the arm itself"),
        ({"arm": "so10"}, UnknownNameError, "unknown driver 'so10'"),
        ({"gripper": "robotic"}, UnknownNameError, "unknown gripper 'robotic'; valid: robotiq"),
        ({"wrench": "netft"}, UnknownNameError, "unknown force sensor 'netft'; valid: net_ft"),
        ({"gripper_settings": ("port=/dev/x",)}, ConfigError, "gripper_settings are given, but not whose they are"),
        ({"gripper": "robotiq", "gripper_settings": ("prot=/dev/x",)}, ConfigError, "gripper_settings: .*prot"),
        ({"wrench": "net_ft", "wrench_settings": ("port=a",)}, ConfigError, "wrench_settings: .*port"),
    ],
)
def test_what_is_wrong_with_a_setting_is_named(make, settings, error, message):
    with pytest.raises(error, match=message):
        make(**settings)
