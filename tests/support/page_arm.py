"""The example of docs/add/arm.md: its driver, and its peer in a process of its own."""

import os

from documents import ADD, Example
from peer_process import PeerProcess

ADDRESS = f"127.21.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"


class PageArm:
    """The driver of the page against its peer.

    Attributes:
        module: The module of the driver.
        peer: The peer; told the name of a fault, or an empty line to end its cause, it answers where its tool is.
    """

    def __init__(self, tmp_path, monkeypatch):
        self.module = Example.read(ADD / "arm.md").load("my_arm", tmp_path, monkeypatch)
        self.peer = PeerProcess(tmp_path / "my_arm_peer.py", ADDRESS)

    def make(self, host):
        """Make a driver."""
        return self.module.MyArm(self.module.MyArmConfig(ADDRESS), host)

    def where(self, fault=""):
        """Inject a fault, and return the true position of the tool [m]."""
        return [float(number) for number in self.peer.tell(fault).split()]
