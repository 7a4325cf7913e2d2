import pytest
from servo_peer import ServoPeer

FAMILIES = ("feetech", "dynamixel")


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def peer(family, tmp_path):
    """Six servos of either family on a pseudo-terminal."""
    peer = ServoPeer(family, tmp_path / "tty").start()
    yield peer
    peer.end()
