"""The lock of a directory: what the operating system refuses is told with the cure that helps."""

import resource

import pytest

from robot_rl.errors import RunDirectoryError
from robot_rl.system.directory_lock import Lock


def test_where_nothing_can_be_written_the_error_says_so_and_nothing_stays_locked(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as on a full disk
    try:
        with pytest.raises(RunDirectoryError, match=r"cannot write .*x\.lock: .*; larger than files may be here"):
            Lock(tmp_path / "x.lock")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with Lock(tmp_path / "x.lock") as lock:
        assert lock.held
