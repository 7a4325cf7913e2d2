import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from robot_rl.errors import RunDirectoryError
from robot_rl.system.atomic_file import to_json, write_atomically, writing


def test_json_of_what_a_run_reports():
    value = {"rate": np.float32(0.5), "n": np.int64(3), "ci": (0.25, np.nan), "path": Path("a/b"), "xs": np.arange(2)}
    assert json.loads(to_json(value)) == {"rate": 0.5, "n": 3, "ci": [0.25, None], "path": "a/b", "xs": [0, 1]}
    assert to_json(float("inf")) == "null"


def test_a_file_is_replaced_in_one_piece(tmp_path):
    path = tmp_path / "a.json"
    write_atomically(path, "old")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "cure"),
    [(errno.ENOSPC, "the disk is full; make room"), (errno.EACCES, "not allowed; choose"), (errno.EIO, "check that")],
)
def test_the_error_says_the_cure(number, cure):
    with pytest.raises(RunDirectoryError, match=cure), writing(Path("x")):
        raise OSError(number, "refused")


def test_a_full_device_is_an_error():
    with pytest.raises(RunDirectoryError, match="the disk is full"), writing(Path("/dev/full")):
        Path("/dev/full").write_text("x")


def test_a_name_of_other_bytes_is_written_and_read_back(tmp_path):
    name = os.fsdecode(b"caf\xe9 \xc3\xbc")
    write_atomically(tmp_path / "file", to_json({"argv": [name]}))
    assert json.loads((tmp_path / "file").read_text(encoding="utf-8")) == {"argv": [name]}
