"""The server that runs in LeRobot's interpreter: measurements are those of now, whatever was late before."""

import contextlib
import os
import pty
import threading
import tty
from types import SimpleNamespace

import pytest

from robot_rl.arm.control_thread import own_priority
from robot_rl.arm.lerobot.server import ServedRobot, motor_buses

pytestmark = pytest.mark.wall_clock

serial = pytest.importorskip("serial")


class Motors:
    """A motor behind a pseudo-terminal that answers each request with how many it has had."""

    def __init__(self):
        self.master, slave = pty.openpty()
        tty.setraw(self.master)
        tty.setraw(slave)
        self.serial, self.asked = serial.Serial(os.ttyname(slave), timeout=5.0), 0
        os.close(slave)
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self):
        with contextlib.suppress(OSError):  # the port is closed
            while os.read(self.master, 1):
                self.asked += 1
                os.write(self.master, bytes([self.asked]))


class Arm:
    """A robot as LeRobot's are made: its motors are behind `bus.port_handler.ser`."""

    is_calibrated = True

    def __init__(self, motors):
        self.motors, self.is_connected = motors, False
        self.bus = SimpleNamespace(port_handler=SimpleNamespace(ser=motors.serial))

    def connect(self, calibrate):
        self.is_connected = not calibrate

    def get_observation(self):
        self.motors.serial.write(b"?")
        return {"joint.pos": self.motors.serial.read(1)[0]}


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_one():
    motors = Motors()
    served = ServedRobot()
    served._robot = Arm(motors)
    with own_priority():
        served.connect()
    assert served.observe()["positions"] == {"joint": 1.0}
    for _ in range(2):  # requests that were given up
        motors.serial.write(b"?")
    while motors.serial.in_waiting < 2:
        pass
    found = served.observe()
    assert found["positions"] == {"joint": 4.0}
    assert found["began"] <= found["ended"]


def test_the_buses_of_arms_that_a_robot_is_made_of_are_found():
    motors = [Motors(), Motors()]
    both = SimpleNamespace(left_arm=Arm(motors[0]), right_arm=Arm(motors[1]), cameras={}, name="both")
    assert [bus.port_handler.ser for bus in motor_buses(both)] == [one.serial for one in motors]
    assert list(motor_buses(SimpleNamespace(bus=None, other=3))) == []
