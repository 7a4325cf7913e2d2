"""A robot file makes of the nodes what `--robot` makes of one process: the same limits, judge, cameras and task."""

import pytest
import yaml
from running import robot_rl

from robot_rl.arm.servo.servo_arm import So101Config
from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.task_file import load_task
from robot_rl.config.nodes import NODE_CONFIGS
from robot_rl.errors import ConfigError
from ros_nodes.bringup.robot_parameters import node_parameters, write_cell
from ros_nodes.node.parameter_file import PARAMETERS, check_names, read_sections

ROBOT = {
    "arm": {"driver": "so101", "port": "/dev/ttyACM7", "joint_speed": 1.2},
    "limits": {"box_low": [0.1, -0.2, 0.0], "box_high": [0.35, 0.2, 0.3], "max_speed": 0.15, "max_age": 0.3},
    "cap": {"cap_speed": 0.4},
    "cell": {"judge": "goal", "scene": "none", "forces": "unmeasured", "devices": ["spacemouse"], "max_age": 0.5},
    "cameras": {
        "wrist": {"source": "uvc:/dev/video0", "rate": 15.0, "crop": [80, 0, 480, 480]},
        "front": {"source": "realsense:0123456789", "rate": 15.0},
    },
    "goal": {"spread": [0.05, 0.05, 0.01], "tolerance": 0.01},
    "task": {
        "instruction": "touch the goal",
        "max_steps": 40,
        "control_period": 0.1,
        "workspace": {"low": [-0.1] * 3, "high": [0.1] * 3, "yaw": 0.1, "tilt": 0.2},
        "action_axes": ["x", "y", "z"],
        "cameras": ["wrist"],
        "start": {"position": [0.21, 0.0, 0.06], "quaternion": [0.1843, 0.0239, 0.9826, 0.0045]},
    },
}


@pytest.fixture
def robot(tmp_path):
    def write(**changes):
        path = tmp_path / "robot.yaml"
        path.write_text(yaml.safe_dump(ROBOT | changes, sort_keys=False))
        return path

    return write


def test_every_node_gets_what_the_file_says_and_nothing_that_it_has_not(robot, tmp_path):
    path = robot()
    files = write_cell(path, "touch", tmp_path)
    sections = read_sections(files.params)
    check_names(sections)
    of = {section.node: dict(section.parameters) for section in sections}
    made = {
        node: NODE_CONFIGS[node](**{key: tuple(v) if isinstance(v, list) else v for key, v in of[node].items()})
        for node in ("safety_node", "task_node", "camera_node", "teleop_node", "actor_node")
    }
    file = read_robot_file(path, "touch")
    assert load_task(files.task, "touch") == file.task
    assert (files.driver, files.without) == ("so101", ())
    assert made["safety_node"].max_speed == 0.15
    assert made["actor_node"].robot_file == str(path), "the run records the robot's commissioning"
    assert made["safety_node"].max_age == 0.3, "the smaller of both"
    task = made["task_node"]
    assert (task.judge, task.scene, task.goal_spread, task.goal_tolerance) == ("goal", "none", (0.05, 0.05, 0.01), 0.01)
    assert made["camera_node"].cameras == ("wrist=uvc:/dev/video0", "front=realsense:0123456789")
    assert made["camera_node"].crops == ("wrist=80,0,480,480",)
    assert made["teleop_node"].device == "spacemouse"
    own = {key: value for key, value in of["robot_node"].items() if key in So101Config.__dataclass_fields__}
    assert own == {"port": "/dev/ttyACM7", "joint_speed": 1.2}, "defaults are those of the node"
    assert of["robot_node"]["cap_speed"] == 0.4
    assert of["robot_node"]["cap_box_high"] == [0.35, 0.2, 0.3]


def test_a_cell_without_cameras_has_no_node_for_them(robot, tmp_path):
    files = write_cell(robot(cameras={}, task=ROBOT["task"] | {"cameras": []}), "touch", tmp_path)
    assert files.without == ("cell_cameras",)
    assert "camera_node" not in files.params.read_text()
    assert PARAMETERS in files.params.read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cell": ROBOT["cell"] | {"devices": ["spacemouse", "gamepad"]}},
            "over topics there is one; here: spacemouse, g",
        ),
        (
            {"goal": ROBOT["goal"] | {"centre": [0.4, 0.0, 0.2]}},
            "goal: over topics it has no centre",
        ),
        (
            {"cameras": ROBOT["cameras"] | {"front": {"source": "uvc:/dev/video2"}}},
            "cameras: front: width, height, rate and frozen_after have to be those of the others",
        ),
    ],
)
def test_what_the_nodes_cannot_do_is_refused(robot, changes, message):
    with pytest.raises(ConfigError, match=message):
        node_parameters(read_robot_file(robot(**changes), "touch"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sim",), "--robot_file is for `robot-rl up robot`, not for sim"),
        (("robot", "--driver", "ur", "--task_file", "a"), "--robot_file says what --task_file, --driver says, too"),
        (("robot", "--task", "touch"), "missing.yaml"),
    ],
)
def test_one_line_says_why_a_robot_file_is_of_no_use(tmp_path, arguments, message):
    pytest.importorskip("rclpy")
    done = robot_rl("up", *arguments, "--robot_file", tmp_path / "missing.yaml")
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
