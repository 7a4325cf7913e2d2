"""Two hundred faults, one after the other, on arms that move: each stops, is named, and goes on with consent.

The table says how often each driver meets each fault. What the fault does in detail (how long, how far, what is
recorded) is in the tests of the drivers, and `benchmarks/arm_faults.py` injects a thousand in recorded episodes.
"""

import contextlib
import json
import os
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from franka_peer import FrankaPeer
from in_process_arm import WIDE_CAP, WIDE_LIMITS
from peer_process import PeerProcess
from scripted_arm import eventually
from so101_peer import urdf_of_so101
from ur_peer import UrPeer

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import find_driver
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError
from robot_rl.geometry import Pose

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]
STAND_IN = Path(__file__).parents[1] / "support" / "lerobot_stand_in"
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
    "franka": {
        "reflex": (6, "reflex", "", "reflex"),
        "emergency stop": (2, "estop", "release", "stop is pressed"),
    },
    "lerobot": {
        "error": (2, {"error": "no status packet"}, {}, "no status packet"),
        "process dies": (2, {"die": True}, {}, "ended with exit code 3"),
        "process hangs": (1, {"hang": True}, {}, "no answer within"),
    },
    "feetech": servo_faults(overload=147, voltage=10),
    "dynamixel": servo_faults(overload=8, voltage=2),
}
"""By driver and fault: how often, what the peer is told, what ends the cause, and what the reason has to say.

Most are those that a driver is through with in 20 ms: ur_rtde connects again in a second, a Dynamixel starts again.
"""


def test_there_are_two_hundred():
    assert sum(repeats for faults in TABLE.values() for repeats, *_ in faults.values()) == 200


def ur_arm(folder):
    """A driver's name, its settings, what tells its peer, and what ends the peer."""
    pytest.importorskip("rtde_control", reason="ur_rtde is not installed: pip install 'robot_rl[ur]'")
    peer = UrPeer(f"127.24.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
    return "ur", {"host": peer.address, "watchdog": 2.0}, peer.inject, peer.close


def franka_arm(folder):
    for library in ("franky", "franky_sim"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install 'robot_rl[franka]' franky-sim")
    peer = FrankaPeer()
    return "franka", {"host": peer.address}, peer.inject, peer.close


def lerobot_arm(folder):
    """LeRobot's API, with a robot whose faults stand in a file."""
    script = folder / "script.json"

    def tell(entries):
        part = script.with_suffix(".part")
        part.write_text(json.dumps(entries), encoding="utf-8")
        part.rename(script)

    tell({})
    urdf = folder / "arm.urdf"
    urdf.write_text(urdf_of_so101(), encoding="utf-8")
    settings = {"python": sys.executable, "robot": "scripted_arm", "settings": (f"port={script}", "id=one")}
    return "lerobot", settings | {"urdf": str(urdf), "tip": "tip", "timeout": 1.0}, tell, lambda: None


def servo_arm(folder, family):
    link = folder / "tty"
    peer = PeerProcess("so101_peer.py", family, link)
    for line in ("support", "reset"):
        peer.tell(line)
    return "so101", {"port": str(link), "servos": family, "timeout": 0.1}, peer.tell, peer.end


OPENED = {"ur": ur_arm, "franka": franka_arm, "lerobot": lerobot_arm}


@pytest.fixture(scope="module", params=list(TABLE))
def arm(request, tmp_path_factory):
    """A row of the table, what tells its peer, and the arm."""
    row, folder = request.param, tmp_path_factory.mktemp("arm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(STAND_IN))  # for the process of LeRobot's stand-in
        name, settings, tell, end = OPENED[row](folder) if row in OPENED else servo_arm(folder, row)
        kind = find_driver(name)
        io = ArmRobotIO(
            lambda host: kind(kind.Config(**settings), host), WIDE_LIMITS, WIDE_CAP, freshness=Freshness(OLD)
        )
        yield row, tell, io
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
        tell(inject.format(servo=1 + number % 5) if isinstance(inject, str) else inject)
        assert eventually(lambda named=named: io.stopped and re.search(named, io.stopped)), (number, io.stopped)
        if mend or isinstance(mend, dict):
            tell(mend)
        began = time.monotonic()
        while io.stopped:
            with contextlib.suppress(ArmStoppedError):  # what was switched on again needs a moment
                io.recover()
            assert time.monotonic() - began < 10.0, (number, io.stopped)
