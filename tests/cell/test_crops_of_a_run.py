"""A run on a robot keeps the crops of its cameras, and is not continued on other ones."""

import copy
from dataclasses import replace

import pytest
import yaml

from robot_rl.cell.robot_file import crop_facts, read_robot_file
from robot_rl.cell.robot_place import robot_deployment
from robot_rl.config.components import EncoderConfig, TrainConfig
from robot_rl.errors import ConfigError
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.resume import check_crops
from robot_rl.run.training_files import open_training_files

FILE = {
    "arm": {"driver": "so101", "port": "/dev/ttyACM0"},
    "limits": {"box_low": [0.1, -0.2, 0.0], "box_high": [0.35, 0.2, 0.3]},
    "cell": {"forces": "unmeasured"},
    "cameras": {"wrist": {"source": "pattern:"}, "front": {"source": "pattern:", "crop": [0, 0, 64, 64]}},
    "crops": {"name": "plug", "version": 1, "wrist": [80, 0, 480, 480]},
    "task": {
        "instruction": "insert the plug",
        "max_steps": 20,
        "control_period": 0.1,
        "workspace": {"low": [-0.05] * 3, "high": [0.05] * 3, "yaw": 0.1, "tilt": 0.1},
        "action_axes": ["x", "y", "z"],
        "cameras": ["wrist"],
    },
}
CONFIG = TrainConfig(task="plug", observations="pixels", encoder=EncoderConfig(cameras=("wrist",)))


def robot(path, **changes):
    content = copy.deepcopy(FILE) | changes
    (path / "robot.yaml").write_text(yaml.safe_dump(content))
    return path / "robot.yaml"


def test_the_crop_of_the_profile_is_that_of_its_camera(tmp_path):
    file = read_robot_file(robot(tmp_path), "plug")
    assert (file.cameras["wrist"].crop, file.cameras["front"].crop) == ((80, 0, 480, 480), (0, 0, 64, 64))
    cameras = crop_facts(file.path)["cameras"]
    assert cameras["wrist"] == {"frame": [640, 480], "crop": [80, 0, 480, 480]}
    assert cameras["front"]["crop"] == [0, 0, 64, 64]


@pytest.mark.parametrize(
    ("crops", "named"),
    [
        ({"name": "plug", "version": 1, "side": [0, 0, 4, 4]}, "crops: no side among front, wrist"),
        (
            {"name": "plug", "version": 1, "front": [0, 0, 4, 4]},
            "front: crop stands in the profile plug (crops) as well",
        ),
    ],
)
def test_a_profile_that_does_not_fit_its_cameras_is_refused(tmp_path, crops, named):
    with pytest.raises(ConfigError) as raised:
        read_robot_file(robot(tmp_path, crops=crops), "plug")
    assert named in str(raised.value)


def test_a_run_is_not_continued_on_other_crops(tmp_path):
    here = robot_deployment(read_robot_file(robot(tmp_path), "plug"))
    run = tmp_path / "run"
    RunDirectory.create(run, CONFIG, facts=here.facts).close()
    with open_training_files(CONFIG, run, here, resume=True, demos=None):
        pass  # nothing has changed
    other = {"name": "plug", "version": 2, "wrist": [0, 0, 480, 480]}
    moved = robot_deployment(read_robot_file(robot(tmp_path, crops=other), "plug"))
    complaint = "its policy saw camera wrist cropped to 80, 0, 480, 480 of profile plug version 1, .* plug version 2"
    with (
        pytest.raises(ConfigError, match=complaint),
        open_training_files(CONFIG, run, moved, resume=True, demos=None),
    ):
        pass
    with open_training_files(replace(CONFIG, observations="state"), run, moved, resume=True, demos=None):
        pass  # it observes no camera
    with pytest.raises(ConfigError, match=complaint):  # as an evaluation asks
        check_crops(run, moved.facts, ("wrist",))
