"""Where no cameras are named, a policy sees all that its place has; a run keeps those that it began with."""

from dataclasses import replace

import pytest
import yaml

from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.robot_place import robot_deployment
from robot_rl.config.components import EncoderConfig, TrainConfig
from robot_rl.errors import ConfigError
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.training_files import open_training_files

PLUG = TrainConfig(task="plug", observations="pixels")
TASK = {
    "instruction": "insert the plug",
    "max_steps": 20,
    "control_period": 0.1,
    "workspace": {"low": [-0.05] * 3, "high": [0.05] * 3, "yaw": 0.1, "tilt": 0.1},
    "action_axes": ["x", "y", "z"],
}


def place(path, cameras, of_task=()):
    """A robot file with these cameras, of which the task names some."""
    content = {
        "arm": {"driver": "so101", "port": "/dev/ttyACM0"},
        "limits": {"box_low": [0.1, -0.2, 0.0], "box_high": [0.35, 0.2, 0.3]},
        "cell": {"forces": "unmeasured"},
        "cameras": {name: {"source": "pattern:"} for name in cameras},
        "task": {**TASK, "cameras": list(of_task)},
    }
    (path / "robot.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return robot_deployment(read_robot_file(path / "robot.yaml", "plug"))


def seen(deployment, config):
    return deployment.with_cameras(config).encoder.cameras


@pytest.mark.parametrize(
    ("task", "cameras"),
    [
        ("peg_insert", ("front", "wrist")),
        ("handover", ("front", "left_wrist", "right_wrist")),
        ("gym:Pendulum-v1", ("render",)),
    ],
)
def test_in_simulation_they_are_those_of_the_task(task, cameras):
    assert seen(Deployment(), TrainConfig(task=task, observations="pixels")) == cameras


@pytest.mark.parametrize(
    ("cameras", "of_task", "expected"),
    [
        (("top", "hand"), (), ("top", "hand")),
        (("top", "hand", "back"), ("hand", "top"), ("hand", "top")),
    ],
)
def test_on_an_arm_they_are_those_of_its_file_of_which_the_task_may_name_some(tmp_path, cameras, of_task, expected):
    assert seen(place(tmp_path, cameras, of_task), PLUG) == expected


def test_those_that_are_named_stay_and_from_state_none_are_needed(tmp_path):
    here = place(tmp_path, ("top", "hand"))
    chosen = replace(PLUG, encoder=EncoderConfig(cameras=("hand",)))
    assert here.with_cameras(chosen) is chosen
    from_state = TrainConfig(task="plug")
    assert here.with_cameras(from_state) is from_state


def test_an_arm_without_cameras_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"plug has no cameras, .*do without --obs pixels"):
        place(tmp_path, ()).with_cameras(PLUG)


def test_a_new_run_records_them_and_goes_on_with_them_whatever_the_arm_has_by_then(tmp_path):
    run = tmp_path / "run"
    with open_training_files(PLUG, run, place(tmp_path, ("hand",)), resume=False, demos=None) as files:
        RunDirectory.create(run, files.config).close()
    assert RunDirectory.read_config(run).encoder.cameras == ("hand",)
    more = place(tmp_path, ("top", "hand"))
    for given in (PLUG, RunDirectory.read_config(run)):
        with open_training_files(given, run, more, resume=True, demos=None) as files:
            files.load_checkpoint()
            assert files.config.encoder.cameras == ("hand",)
