"""Parameters of nodes in processes of their own, as `ros2 run` and `ros2 launch` start them."""

import subprocess
import sys

import pytest
from ros_nodes_graph import DOMAIN
from running import ROBOT_RL, environment


def start_safety_node(*arguments):
    command = [sys.executable, "-m", "ros_nodes.nodes.safety_node", "--ros-args", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(ROS_DOMAIN_ID=str(DOMAIN)))


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "robot.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("/**/safety_node: {ros__parameters: {max_sped: 0.1}}", (), "did you mean 'max_speed'"),
        ("/**/safty_node: {ros__parameters: {max_speed: 0.1}}", (), "did you mean 'safety_node'"),
        ("/**/safety_node: {ros__parameters: {max_speed: 0.1}}", ("-p", "max_sped:=0.1"), "did you mean 'max_speed'"),
        ("/**/safety_node: {ros__parameters: {max_speed: 0.1", (), "is not YAML"),
        ("safety_node: {ros__parameters: {max_speed: 0.1}}", ("-r", "__ns:=/cell"), "write /**/safety_node"),
    ],
)
def test_a_typing_error_ends_the_node_with_the_cure_instead_of_its_defaults(file, text, arguments, expected):
    node = start_safety_node("--params-file", str(file(text)), *arguments)
    _, printed = node.communicate(timeout=60)
    assert node.returncode == 2  # starting it again would not help
    assert expected in printed
    assert "Traceback" not in printed


def test_a_value_of_the_file_that_does_not_count_is_reported(file):
    path = file("/**/safety_node: {ros__parameters: {max_speed: 0.1, max_force: 20.0}}")
    node = start_safety_node("--params-file", str(path), "-p", "max_speed:=0.2")
    lines = []
    for line in node.stderr:
        lines.append(line)
        if "certified" in line:
            break
    node.terminate()
    node.communicate(timeout=60)
    (reported,) = [line for line in lines if str(path) in line]
    assert "max_speed: 0.2 counts, not 0.1" in reported


def test_up_refuses_a_task_file_that_is_not_there(tmp_path):
    command = [ROBOT_RL, "up", "robot", "--task_file", str(tmp_path / "task.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"--task_file {tmp_path / 'task.yaml'}: there is no such file" in done.stderr
    assert "started" not in done.stderr


def test_up_refuses_the_file_before_anything_starts(file):
    path = file("/**/safety_node: {ros__parameters: {max_sped: 0.1}}")
    command = [ROBOT_RL, "up", "robot", "--params", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment(ROS_DOMAIN_ID=str(DOMAIN))
    )
    assert done.returncode == 1
    assert "did you mean 'max_speed'" in done.stderr
    assert "started" not in done.stderr
