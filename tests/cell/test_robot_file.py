"""The robot file: every mistake in it is one line that names the place, before anything is opened."""

import copy

import pytest
import yaml
from page_arm import ADDRESS, PageArm

from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.robot_workcell import RobotWorkcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, UnknownNameError

TASK = {
    "instruction": "insert the plug",
    "max_steps": 20,
    "control_period": 0.1,
    "workspace": {"low": [-0.05, -0.05, -0.05], "high": [0.05, 0.05, 0.05], "yaw": 0.1, "tilt": 0.1},
    "action_axes": ["x", "y", "z"],
    "cameras": ["wrist"],
}
FILE = {
    "arm": {"driver": "my_arm", "host": ADDRESS},
    "limits": {"box_low": [0.3, -0.2, 0.1], "box_high": [0.7, 0.2, 0.5]},
    "cap": {"cap_speed": 0.4},
    "cell": {"forces": "unmeasured", "devices": ["keyboard"]},
    "cameras": {"wrist": {"source": "file:frames", "crop": [0, 0, 8, 8], "rate": 50.0, "frozen_after": 0.0}},
    "task": TASK,
}


@pytest.fixture
def my_arm(tmp_path, monkeypatch):
    page = PageArm(tmp_path, monkeypatch)
    yield page.module
    page.peer.end()


def write(path, content):
    file = path / "robot.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def changed(**changes):
    content = copy.deepcopy(FILE)
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            content[section] = {**content.get(section, {}), name: value}
        elif value is None:
            del content[section]
        else:
            content[section] = value
    return content


def test_a_whole_file_is_read_and_the_cap_has_the_box_of_the_limits(tmp_path, my_arm):
    robot = read_robot_file(write(tmp_path, FILE), "plug")
    arm = robot.connection
    assert (arm.driver, arm.driver_config.host) == ("my_arm", ADDRESS)
    assert (arm.cap.cap_box_low, arm.cap.cap_speed) == (arm.limits.box_low, 0.4)
    assert (robot.task.name, robot.cameras["wrist"].crop) == ("plug", (0, 0, 8, 8))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"armm": {}}, "unknown armm; valid: arm, limits"),
        ({"limits": None}, "limits is missing"),
        ({"arm": {"rate": 1.0}}, "needs a section `arm` with a `driver`"),
        ({"arm__driver": "crips"}, "unknown driver 'crips'; valid: "),
        ({"arm__rate": 200.0}, "arm (driver my_arm): rate: unknown key; valid keys at the top level: host"),
        ({"arm": {"driver": "ur", "rate": "fast"}}, "arm (driver ur): rate: "),
        ({"limits__max_sped": 0.1}, "limits: max_sped: unknown key; did you mean 'max_speed'?"),
        ({"limits__max_speed": -1.0}, "limits: max_speed: "),
        ({"cap__cap_box_low": [0, 0, 0]}, "cap: unknown cap_box_low; valid: cap_feedforward_force, "),
        ({"cell__judge": "judge"}, "cell: judge: "),
        ({"cameras__wrist": {"sorce": "uvc:0"}}, "cameras: wrist: sorce: unknown key; did you mean 'source'?"),
        ({"cameras__wrist": {"source": "uvc:0", "crop": [1, 2]}}, "crop has 2 numbers"),
        ({"task__cameras": ["front"]}, "task: cameras: no front among wrist"),
        ({"task__max_step": 3}, "task: unknown max_step; valid: instruction"),
        ({"task__control_period": 0.0}, "task: control_period is 0 s; it has to be above 0, e.g. 0.05 for 20 Hz"),
        ({"task__control_period": float("inf")}, "task: control_period is inf s; it has to be above 0"),
        ({"task__wrench_axes": ["up"]}, "wrench_axes: up; valid: x, y, z, roll, pitch, yaw, each once"),
        ({"task__wrench_axes": ["x"]}, "action_force is 0 N; it is finite and above 0 where wrench_axes has any of"),
        ({"task__action_torque": 1.0}, "action_torque is 1 Nm; it is finite and above 0 where wrench_axes has any of"),
        (
            {"task": {**TASK, "wrench_axes": ["z"], "action_force": 5.0}},
            "task plug: wrench_axes are z, and the driver my_arm in ",
        ),
        ({"goal": {"tolerance": 0.01}}, "goal has no effect without `judge: goal`"),
        (
            {"task__start": {"position": [0.5, 0.0, 0.6], "quaternion": [0, 1, 0, 0]}},
            "plug cannot begin: its start [0.5, 0.0, 0.6] is outside the box of the limits, [0.3, -0.2, 0.1] to",
        ),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_a_mistake_is_one_line(tmp_path, my_arm, changes, named):
    with pytest.raises((ConfigError, UnknownNameError)) as caught:
        read_robot_file(write(tmp_path, changed(**changes)), "plug")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


BACK = {"task": {"instruction": "pull the plug out", "start": None}, "judge": "goal", "goal": {"tolerance": 0.02}}
WITH_REVERSE = {"task__reverse": "unplug", "reverse": BACK}


def test_the_task_that_leads_back_has_what_differs_and_for_the_rest_what_the_task_has(tmp_path, my_arm):
    file = write(tmp_path, changed(**WITH_REVERSE))
    there, back = read_robot_file(file, "plug"), read_robot_file(file, "unplug")
    assert there.reverse == back.reverse == "unplug"
    assert (there.task.name, there.task.instruction, there.cell.judge) == ("plug", "insert the plug", "person")
    assert (back.task.name, back.task.instruction, back.cell.judge) == ("unplug", "pull the plug out", "goal")
    assert back.task.max_steps == there.task.max_steps and back.goal.tolerance == 0.02
    assert back.cell.devices == there.cell.devices and back.cameras == there.cameras


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"reverse": []}, "reverse: has to be a mapping with what differs: task, judge, goal"),
        ({"reverse": {"limits": {}}}, "reverse: unknown limits; valid: task, judge, goal"),
        ({"task__reverse": ""}, "the section reverse has no effect without its name"),
        ({"reverse": {"task": {"max_step": 3}}}, "task, with what differs in reverse: unknown max_step"),
        ({"reverse": {"judge": "goal", "goal": {"centre": [0.4, 0.0]}}}, "goal: centre has 2 numbers"),
        ({"reverse": {"judge": "nobody"}}, "cell: judge: "),
        ({"reverse": {"goal": {}}}, "goal has no effect without `judge: goal`"),
    ],
    ids=str,
)
def test_a_mistake_in_what_differs_is_one_line(tmp_path, my_arm, changes, named):
    with pytest.raises(ConfigError) as caught:
        read_robot_file(write(tmp_path, changed(**{**WITH_REVERSE, **changes})), "unplug")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_forces_that_are_limited_and_not_measured_are_refused_unless_accepted(tmp_path, my_arm):
    robot = read_robot_file(write(tmp_path, changed(cell={})), "plug")
    with pytest.raises(ConfigError, match=r"ends at a force of 60 N, but the driver my_arm measures no force"):
        RobotWorkcell(robot)("plug", WorkcellOptions())


@pytest.mark.wall_clock
def test_arm_and_cameras_become_an_environment(tmp_path, my_arm):
    import numpy as np
    from PIL import Image

    frames = tmp_path / "frames"
    frames.mkdir()
    for number in range(3):
        Image.fromarray(np.full((12, 16, 3), 80 * number + 10, np.uint8)).save(frames / f"{number}.png")
    content = changed(cameras={"wrist": {**FILE["cameras"]["wrist"], "source": f"file:{frames}"}})
    robot = read_robot_file(write(tmp_path, content), "plug")
    cell = RobotWorkcell(robot)("plug", WorkcellOptions(cameras=("wrist",), image_size=(32, 32)))
    env = RobotEnv(cell, options=WorkcellOptions(cameras=("wrist",), image_size=(32, 32)))
    try:
        observation, _ = env.reset(seed=0)
        assert observation["images/wrist"].shape == (32, 32, 3)
        assert "state/wrench" not in observation
        start = observation["state/tcp_pose"][:3].copy()
        for _ in range(4):
            observation, *_ = env.step(np.array([0.5, 0.0, 0.0], np.float32))
        assert observation["state/tcp_pose"][0] > start[0] + 0.003
    finally:
        env.close()
