"""A short part of `benchmarks/lying_files.py`; and files that are none, in data sets and bags."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tagged import valid

from robot_rl.data.formats.lerobot_export import export_lerobot
from robot_rl.data.formats.lerobot_import import LeRobotReader
from robot_rl.data.formats.rosbag_import import read_bag
from robot_rl.data.formats.rosbag_mapping import BagMapping
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "lying_files.py"


@pytest.mark.slow
def test_lying_files_are_read_right_repaired_or_refused():
    done = subprocess.run([sys.executable, SCRIPT, "--cases", "12"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fifo_in_the_place_of_a_bag_is_refused(tmp_path):
    os.mkfifo(tmp_path / "bag.mcap")
    entry = {"topic": "/a", "fields": ["x"]}
    mapping = BagMapping.model_validate({"rate": 10, "observations": {"state/a": entry}, "action": entry})
    with pytest.raises(DataError, match="is a FIFO, must be a regular file"):
        list(read_bag(tmp_path, mapping))


@pytest.mark.parametrize(
    ("name", "content"),
    [("robot_rl/*.npz", b""), ("meta/robot_rl.json", b"[" * 100_000), ("meta/robot_rl.json", b"{}")],
)
def test_a_file_of_a_data_set_without_sense_is_refused(tmp_path, name, content):
    with EpisodeStore.create(tmp_path / "store", {"task": "reach"}) as store:
        store.append(valid(0, 4))
        export_lerobot(store, tmp_path / "set", fps=10.0)
    next((tmp_path / "set").glob(name)).write_bytes(content)
    with pytest.raises(DataError):
        list(LeRobotReader(tmp_path / "set").episodes())


@pytest.mark.parametrize("name", ["meta/episodes/*/*.parquet", "data/*/*.parquet", "robot_rl/*.npz"])
def test_a_fifo_in_a_data_set_is_refused(tmp_path, name):
    with EpisodeStore.create(tmp_path / "store", {"task": "reach"}) as store:
        store.append(valid(0, 4))
        export_lerobot(store, tmp_path / "set", fps=10.0)
    file = next((tmp_path / "set").glob(name))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError, match="no regular file"):
        list(LeRobotReader(tmp_path / "set").episodes())
