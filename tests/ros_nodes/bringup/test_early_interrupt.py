"""Ctrl-C in the first seconds of `robot-rl up`, in which nodes are started and import what they need."""

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
