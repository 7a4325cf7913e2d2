"""Two hundred faults, one after the other, on arms that move: each stops, is named, and goes on with consent.

The table says how often each driver meets each fault. What the fault does in detail (how long, how far, what is
recorded) is in the tests of the drivers, and `benchmarks/arm_faults.py` injects a thousand in recorded episodes.
"""

import contextlib
import os
import re
import time

import numpy as np
import pytest
from in_process_arm import WIDE_CAP, WIDE_LIMITS
from peer_process import PeerProcess
from scripted_arm import eventually
from ur_peer import UrPeer

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import find_driver
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError
from robot_rl.geometry import Pose

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]
OLD = 1.0
"""Largest age of a state [s]: a test shall not fail because its machine is busy."""


def servo_faults(overload, voltage):
    return {
        "overload": (overload, "trip {servo}", "", "overloaded"),
        "voltage": (voltage, "supply 3.7", "supply 12", "supply voltage"),
        "reboot": (5, "reboot", "", "torque|no servo answers|power"),
        "power off": (1, "power off", "power on", "no servo answers"),
        "unplugged": (1, "unplug", "plug", "is gone|there is no"),
    }


TABLE = {
    "ur": {
        "protective stop": (2, "protective", "", "protective stop"),
        "emergency stop": (1, "estop", "release", "emergency stop"),
        "program ended": (1, "stop-program", "", "program has ended"),
        "cable cut": (1, "cut", "mend", "silent|connection|program has ended"),
        "frozen state": (1, "freeze", "thaw", "silent"),
    },
    "feetech": servo_faults(overload=160, voltage=10),
    "dynamixel": servo_faults(overload=8, voltage=2),
}
"""By driver and fault: how often, what the peer is told, what ends the cause, and what the reason has to say.

Most are those that a driver is through with in 20 ms: ur_rtde connects again in a second, a Dynamixel starts again.
"""


def test_there_are_two_hundred():
    assert sum(repeats for faults in TABLE.values() for repeats, *_ in faults.values()) == 200


@pytest.fixture(scope="module", params=list(TABLE))
def arm(request, tmp_path_factory):
    """A driver's name, what tells its peer, and the arm."""
    if request.param == "ur":
        pytest.importorskip("rtde_control", reason="ur_rtde is not installed: pip install 'robot_rl[ur]'")
        peer = UrPeer(f"127.24.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
        name, settings, tell, end = "ur", {"host": peer.address, "watchdog": 2.0}, peer.inject, peer.close
    else:
        link = tmp_path_factory.mktemp(request.param) / "tty"
        peer = PeerProcess("so101_peer.py", request.param, link)
        settings = {"port": str(link), "servos": request.param, "timeout": 0.1}
        name, tell, end = "so101", peer.tell, peer.end
        for line in ("support", "reset"):
            tell(line)
    kind = find_driver(name)
    io = ArmRobotIO(lambda host: kind(kind.Config(**settings), host), WIDE_LIMITS, WIDE_CAP, freshness=Freshness(OLD))
    yield request.param, tell, io
    io.close()
    end()


def move(io, up):
    """Command the measured pose plus a way up [m], as a policy does."""
    here = io.read().T_base_tcp
    io.command(Command(io.wall.now(), 0.5, Pose(here.position + np.array([0.0, 0.0, up]), here.quaternion)))


def test_each_is_named_and_ends_with_consent(arm):
    driver, tell, io = arm
    faults = [each for each in TABLE[driver].values() for _ in range(each[0])]
    for number, (_, inject, mend, named) in enumerate(faults):
        assert eventually(lambda: io.parts.age("pose", io.wall.now()) < OLD)
        move(io, 0.01 if number % 2 else -0.01)
        tell(inject.format(servo=1 + number % 5))
        assert eventually(lambda named=named: io.stopped and re.search(named, io.stopped)), (number, io.stopped)
        if mend:
            tell(mend)
        began = time.monotonic()
        while io.stopped:
            with contextlib.suppress(ArmStoppedError):  # what was switched on again needs a moment
                io.recover()
            assert time.monotonic() - began < 10.0, (number, io.stopped)
