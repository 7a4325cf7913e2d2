"""Before anything else: `sim` picks MuJoCo's OpenGL platform, which has to happen before anybody imports `mujoco`.

And examples of properties may take as long as they do, since these machines are busy at times.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # here and in processes that tests start: more threads than cores wait

import sim  # noqa: F401

RERUNS = 2
"""How often a test that keeps to the wall clock is run again where it fails; a defect fails each time."""

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The summary names what was run again."""
    for item in items:
        if item.get_closest_marker("wall_clock"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of a file share fixtures and stay in one process; so do graphs of nodes, which keep to the wall clock."""
    from xdist.scheduler import LoadFileScheduling

    class OneGraph(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "ros_nodes" if "ros_nodes" in file.split("/") else file

    return OneGraph(config, log) if config.getvalue("dist") == "loadfile" else None
