"""Before anything else: `sim` picks MuJoCo's OpenGL platform, which has to happen before anybody imports `mujoco`.

And examples of properties may take as long as they do, since these machines are busy at times.
"""

import faulthandler
import gc
import os
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # here and in processes that tests start: more threads than cores wait
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # there are none, and each process would look for them
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile the same hundreds of modules anew

import sim  # noqa: F401

sys.dont_write_bytecode = False
gc.disable()  # until all tests are collected: what is made up to then stays

ROOT = Path(__file__).parents[1]
BESIDE = 4
"""Niceness of tests that run in several processes and do not keep to the wall clock: they make way for those that do.

So there may be one process more than cores, which works while others wait for an arm or a graph.
"""
RERUNS = 2
"""How often a test that keeps to the wall clock is run again where it fails; a defect fails each time."""
RERUNS_DELAY = 5
"""How long it waits before that [s]: what kept the machine busy may be over then."""

HUNG = 1000
"""After how long a test, run thrice, that its own time limit could not end takes its process with it [s]."""
STDERR = pytest.StashKey[int]()
"""Where the standard error goes while tests catch it."""

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_configure(config):
    config.stash[STDERR] = os.dup(2)
    faulthandler.enable(config.stash[STDERR])


def pytest_collection_finish():
    """No collection looks again at the modules and the thousands of tests, which takes 0.3 s."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """A native call that never returns, or a teardown after the time limit, would hold up the whole run for ever.

    pytest's own plugin forgets its timer as soon as something fails, so it is left out (`addopts`).
    """
    faulthandler.dump_traceback_later(HUNG, file=item.config.stash[STDERR], exit=True)
    if hasattr(item.config, "workerinput") and not keeps_to_the_wall_clock(item.path):
        os.nice(max(BESIDE - os.nice(0), 0))  # for good; whoever has tests that keep to the wall clock begins with them
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """The summary names what was run again. Of several processes none shall begin a long file when others end."""
    slow = {}
    for item in items:
        slow[item.path] = slow.get(item.path, 0) + bool(item.get_closest_marker("slow"))
        if item.get_closest_marker("wall_clock"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS, reruns_delay=RERUNS_DELAY))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not keeps_to_the_wall_clock(item.path), -slow[item.path]))


@cache
def keeps_to_the_wall_clock(file):
    """Whether tests of this file do; all graphs of nodes are among them."""
    return "ros_nodes" in file.parts or "mark.wall_clock" in file.read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of a file share fixtures and stay in one process; so does all that keeps to the wall clock.

    Two of those at once, each with its processes, would be late by what the other one needs.
    """
    from xdist.scheduler import LoadFileScheduling

    class OneClock(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return "wall clock" if keeps_to_the_wall_clock(ROOT / file) else file

        def remove_node(self, node):
            """Leave the finished files of a worker that crashed out of what is queued again.

            pytest-xdist 3.8 queues them too; with nothing in them to run, the others wait for ever for their next test.
            """
            files = self.assigned_work[node]
            self.assigned_work[node] = {file: tests for file, tests in files.items() if not all(tests.values())}
            return super().remove_node(node)

        def mark_test_pending(self, item):
            """Nothing to do: `remove_node` has queued the test that crashed again, with what was left of its file.

            Without this, pytest-rerunfailures counts a native crash of a graph as a failure, though it runs again.
            """

    config.option.loadscopereorder = False  # `pytest_collection_modifyitems` has put them in order
    return OneClock(config, log) if config.getvalue("dist") == "loadfile" else None
