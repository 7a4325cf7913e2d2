"""Before anything else: `sim` picks MuJoCo's OpenGL platform, which has to happen before anybody imports `mujoco`.

And examples of properties may take as long as they do, since these machines are busy at times.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # here and in processes that tests start: more threads than cores wait

import sim  # noqa: F401

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_collection_modifyitems(items):
    """Tests of a file share fixtures and stay in one process; so do graphs of nodes, which keep to the wall clock."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group("ros_nodes" if "ros_nodes" in item.path.parts else str(item.path)))
