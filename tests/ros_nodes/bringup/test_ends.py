"""What ends `robot-rl up`: Ctrl-C while nodes are started and import what they need, and a terminal that is closed."""

import signal
import time

import pytest
from bringup_process import Bringup


@pytest.mark.parametrize("seconds", [0.0, 1.0])
@pytest.mark.parametrize("what", ["train", "sim"])
def test_ctrl_c_ends_all_nodes_that_have_just_been_started_without_a_word_of_theirs(tmp_path, what, seconds):
    pytest.importorskip("rclpy")
    up = Bringup(what, tmp_path / "run")
    up.wait_for(r"\[sim\] started")
    time.sleep(seconds)
    pressed = time.monotonic()
    up.process.send_signal(signal.SIGINT)
    assert up.end() == 130
    assert time.monotonic() - pressed < 60.0
    assert "Traceback" not in up.text()
    assert "KeyboardInterrupt" not in up.text()


def test_a_closed_terminal_ends_all_nodes_in_order_as_ctrl_c_does(tmp_path):
    pytest.importorskip("rclpy")
    up = Bringup("sim", tmp_path / "run", "--only", "teleop")
    up.wait_for(r"\[teleop\] started")
    up.process.send_signal(signal.SIGHUP)
    assert up.end() == 130
    assert not up.alive("teleop")
