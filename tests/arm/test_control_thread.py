"""Real-time priority: who has it, who inherits it, and who must not."""

import os
import sys
import threading

import pytest

from robot_rl.arm.control_thread import BESIDE, own_priority, starting_beside, take_priority
from robot_rl.system.child_process import ChildProcess

with own_priority():
    ALLOWED = take_priority()
pytestmark = pytest.mark.skipif(not ALLOWED, reason="this user may have no real-time priority")


def in_a_thread(look):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(look()))
    thread.start()
    thread.join()
    return seen[0]


def scheduling():
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.sched_getparam(0).sched_priority


def test_threads_that_a_driver_starts_have_priority_and_other_programs_have_none():
    before, lines = scheduling(), []
    with starting_beside():
        assert in_a_thread(scheduling) == (os.SCHED_FIFO, BESIDE)
        code = "import os; print(os.sched_getscheduler(0))"
        child = ChildProcess([sys.executable, "-c", code], on_line=lines.append)
        child.wait(20)
    assert scheduling() == before and in_a_thread(scheduling) == before
    assert lines == [str(os.SCHED_OTHER)]


def test_what_a_thread_that_controls_starts_has_none():
    with own_priority():
        take_priority()
        assert in_a_thread(scheduling) == (os.SCHED_OTHER, 0)
