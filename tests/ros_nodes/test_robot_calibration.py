"""`robot-rl up calibrate_robot`: a camera is calibrated on an arm and a camera that stand in for real ones."""

import os
import subprocess
import sys

import numpy as np
import pytest
import yaml
from board_cell import BoardCell
from cartesian_controller import Controller
from PIL import Image
from ros_nodes_graph import DOMAIN
from running import environment, robot_rl

from calibration.result import HandEye, load_result

CAP = {"cap_box_low": [0.0, -1.0, 0.0], "cap_box_high": [1.0] * 3}
OLD = 2.0
"""Largest age of anything [s]: a test shall not fail because its machine is busy."""


def flags(tmp_path):
    """What describes the cell."""
    (tmp_path / "frames").mkdir()
    nodes = {
        "robot_node": {"max_age": OLD, **CAP},
        "camera_node": {
            "cameras": [f"wrist=file:{tmp_path / 'frames'}"],
            "capture_width": 0,
            "frozen_after": 0.0,
            "silent_after": 20.0,
        },
        "safety_node": {
            "max_age": OLD,
            "heartbeat_timeout": OLD,
            "liveliness_lease": OLD,
            "box_low": [0.0, -1.0, 0.0],
            "box_high": [1.0] * 3,
        },
        "calibrate_node": {
            "max_age": OLD,
            "box_low": [0.43, -0.15, 0.15],
            "box_high": [0.62, 0.15, 0.4],
            "max_turn": 0.5,
        },
    }
    params = {f"/**/{node}": {"ros__parameters": values} for node, values in nodes.items()}
    (tmp_path / "cell.yaml").write_text(yaml.safe_dump(params))
    return ("--namespace", "cell", "--params", tmp_path / "cell.yaml", "--robot", "fr3")


HEARTBEAT = """
import rclpy, sys
from ros_nodes.interface import topics
rclpy.init()
node = rclpy.create_node("robot_node", namespace="cell")
topic = topics.HEARTBEAT
writer = node.create_publisher(topic.type, topic.name.format(node="robot_node"), topic.qos)
while not writer.get_subscription_count():
    rclpy.spin_once(node, timeout_sec=0.1)
print("read", flush=True)
rclpy.spin(node)
"""
"""A robot_node that was started before and does nothing."""


def test_the_check_starts_all_nodes_but_the_one_that_commands_and_says_that_they_fit(graph, tmp_path):
    controller = graph.add(Controller)
    given = flags(tmp_path)
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(tmp_path / "frames" / "one.png")
    variables = environment(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    killed = subprocess.Popen(
        [sys.executable, "-c", HEARTBEAT], env=variables | {"ROS_DOMAIN_ID": str(DOMAIN)}, stdout=subprocess.PIPE
    )

    def kill():
        killed.stdout.read(4)
        killed.kill()
        killed.wait()

    thread = graph.thread(kill)
    done = robot_rl("up", "calibrate_robot", *given, "--check", "--domain", DOMAIN, env=variables)
    killed.kill()
    thread.join()
    assert done.returncode == 0, done.stderr
    assert "3 nodes are there and well: topics, types and quality of service fit" in done.stdout
    assert not controller.targets


@pytest.mark.skipif(
    "ROBOT_RL_REAL_TIME_TESTS" not in os.environ,
    reason="real time needs two quiet cores: set ROBOT_RL_REAL_TIME_TESTS=1 where you have them",
)
@pytest.mark.parametrize("mounting", ["eye_in_hand", "eye_to_hand"])
def test_an_arm_is_driven_and_its_camera_is_found(graph, tmp_path, mounting):
    given, out = flags(tmp_path), tmp_path / "calibration"
    cell = BoardCell(graph, tmp_path / "frames", mounting)
    variables = environment(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    driven = ("--mounting", mounting, "--drive", "--views", "15", "--out", out)
    done = robot_rl("up", "calibrate_robot", *given, *driven, "--domain", DOMAIN, env=variables)
    cell.close()
    assert done.returncode == 0, done.stderr
    hand_eye, quality = load_result(out / "wrist_hand_eye.yaml", HandEye)
    assert quality.good
    change = (cell.truth.T_parent_camera.inverse() @ hand_eye.T_parent_camera).vector()
    assert np.linalg.norm(change[:3]) < 1e-3
    assert np.linalg.norm(change[3:]) < np.radians(0.2)
