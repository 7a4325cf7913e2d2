import pytest
from pages import Rig


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as made:
        yield made
        assert made.failure is None
        assert made.thread.is_alive()
