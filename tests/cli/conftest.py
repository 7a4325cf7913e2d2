"""A short run that is finished, for tests of commands that read one or go on with it."""

import shutil

import pytest
from running import SMALL, robot_rl


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run; tests that would change it take a copy."""
    path = tmp_path_factory.mktemp("cli") / "run"
    done = robot_rl("train", "reach", "--json", "--out", path, *SMALL)
    assert done.returncode == 0, done.stderr
    return path, done


@pytest.fixture
def copy(finished, tmp_path):
    path, _ = finished
    return shutil.copytree(path, tmp_path / "copy")
