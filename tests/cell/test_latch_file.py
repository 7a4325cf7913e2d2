"""A latched stop in a file, as the next process finds it."""

import pytest

from robot_rl.cell.latch_file import LatchFile
from robot_rl.errors import RunDirectoryError


def test_the_next_process_finds_what_is_latched_until_it_is_released(tmp_path):
    file = tmp_path / "latched"
    LatchFile(file).follow("contact force of 90 N, allowed are 60 N")
    following = LatchFile(file)
    assert following.reason == "contact force of 90 N, allowed are 60 N"
    following.follow(None)
    assert LatchFile(file).reason is None
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_nothing_is_kept_and_nothing_fails():
    latch = LatchFile(None)
    latch.follow("outside the box")
    latch.follow(None)
    assert latch.reason is None


def test_a_folder_that_is_not_there_is_said_once(tmp_path):
    latch = LatchFile(tmp_path / "gone" / "latched")
    with pytest.raises(RunDirectoryError, match="No such file"):
        latch.follow("outside the box")
    latch.follow("outside the box")  # the node asks 50 times a second
