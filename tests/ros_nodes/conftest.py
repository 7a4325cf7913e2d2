"""Without ROS these tests are skipped, and say so."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: source an installation, or pip install 'robot_rl[ros]'")

from bringup_process import Bringup


@pytest.fixture
def bringup(tmp_path):
    made = []

    def make(what, *flags, name="run", **settings):
        made.append(Bringup(what, tmp_path / name, *flags, **settings))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
