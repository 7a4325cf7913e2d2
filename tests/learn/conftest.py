"""One thread: two would wait for each other on a busy machine."""

import pytest
from running import one_thread


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield
