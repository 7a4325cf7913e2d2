"""Crops with a name and a version: read, recorded, compared."""

import re

import pytest
import yaml

from robot_rl.camera.crop_profile import CropProfile, check_same_crops, read_crop_profile
from robot_rl.errors import ConfigError

PLUG = {"name": "plug", "version": 2, "wrist": [80, 0, 480, 480]}
FRAMES = {"wrist": (640, 480), "front": (640, 480)}


def facts(version=2, name="plug", frames=None, **crops):
    crops = crops or {"wrist": (80, 0, 480, 480)}
    return CropProfile(name, version, crops).facts(frames or FRAMES)


def test_a_profile_is_read_from_its_section_or_from_a_file_of_its_own(tmp_path):
    robot = tmp_path / "robot.yaml"
    profile = read_crop_profile(PLUG, robot)
    assert profile == CropProfile("plug", 2, {"wrist": (80, 0, 480, 480)})
    (tmp_path / "plug.yaml").write_text(yaml.safe_dump(PLUG))
    assert read_crop_profile("plug.yaml", robot) == profile
    assert read_crop_profile(None, robot).crops == {}


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ([1], "has to be a mapping with a name"),
        ({"wrist": [0, 0, 1, 1]}, "has to be a mapping with a name"),
        ({"name": "plug"}, "version has to be a whole number from 1 on, got None"),
        ({"name": "plug", "version": True}, "version has to be a whole number"),
        ({"name": "plug", "version": 1, "wrist": [0, 0, 4]}, "wrist has to be left, top, width, height"),
        ({"name": "plug", "version": 1, "wrist": [0, 0, 4, -1]}, "wrist has to be left, top, width, height"),
        ("no.yaml", "no.yaml"),
    ],
)
def test_what_is_no_profile_is_one_line_with_its_place(tmp_path, section, named):
    with pytest.raises(ConfigError) as raised:
        read_crop_profile(section, tmp_path / "robot.yaml")
    assert named in str(raised.value) and "\n" not in str(raised.value)


def test_the_same_crops_are_the_same_whatever_they_are_called(tmp_path):
    check_same_crops(facts(), facts(name="other", version=7), ["wrist", "front"], tmp_path)
    check_same_crops(facts(), facts(front=(0, 0, 9, 9), wrist=(80, 0, 480, 480)), ["wrist"], tmp_path)  # not observed
    check_same_crops(None, facts(), ["wrist"], tmp_path)  # a run from before
    check_same_crops(facts(), None, ["wrist"], tmp_path)  # a simulation


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (facts(version=3, wrist=(0, 0, 480, 480)), "cropped to 0, 0, 480, 480 of profile plug version 3"),
        (facts(wrist=(0, 0, 480, 480)), "the profile was changed without another version"),
        (facts(frames={"wrist": (1280, 720)}), "in frames of 1280 x 720 px"),
        (CropProfile("", 0, {}).facts(FRAMES), "cropped to the middle, in frames"),
        (CropProfile("", 0, {}).facts({"front": (640, 480)}), "not at all"),
    ],
)
def test_other_crops_are_named_with_both(tmp_path, now, said):
    begin = (
        f"{tmp_path}: its policy saw camera wrist cropped to 80, 0, 480, 480 of profile plug version 2, in frames of"
    )
    with pytest.raises(ConfigError, match=f"{re.escape(begin)}.*{re.escape(said)}") as raised:
        check_same_crops(facts(), now, ["wrist"], tmp_path)
    assert "set the crop of the run, or begin a new run" in str(raised.value)
