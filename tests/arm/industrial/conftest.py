"""Controllers keep to the wall clock: one that hears nothing for a second stops its arm, busy machine or not.

So a test that fails here is run again, twice at most, and the summary names it, as with ROS; a defect fails each time.
"""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2))
