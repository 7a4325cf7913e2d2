"""The server that runs in LeRobot's interpreter: measurements are those of now, whatever was late before."""

import contextlib
import os
import pty
import threading
import time
import tty
from types import SimpleNamespace
from typing import ClassVar

import pytest

from robot_rl.arm.control_thread import own_priority
from robot_rl.arm.lerobot.server import DIP, ServedRobot, motor_buses

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
    served = ServedRobot(lambda: Arm(motors))
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


class Bus:
    """Motors as LeRobot has them, as far as they are asked what is wrong with them."""

    model_ctrl_table: ClassVar = {"sts3215": {"Torque_Enable": (40, 1), "Status": (65, 1)}}

    def __init__(self, motors):
        self.port_handler = SimpleNamespace(ser=motors.serial)
        self.motors = {name: SimpleNamespace(model="sts3215") for name in ("shoulder", "elbow")}
        self.torque, self.status = dict.fromkeys(self.motors, 1), dict.fromkeys(self.motors, 0)
        self.is_dead, self.done = False, []

    def sync_read(self, register, normalize, num_retry):
        if self.is_dead:
            raise ConnectionError("there is no status packet")
        return dict(self.torque if register == "Torque_Enable" else self.status)

    def disable_torque(self, motors, num_retry):
        self.done.append("off")
        self.torque |= dict.fromkeys(motors, 0)
        self.status |= {name: self.status[name] & ~0x20 for name in motors}  # ends an overload

    def enable_torque(self, motors, num_retry):
        self.done.append("on")
        self.torque |= dict.fromkeys(motors, 1)


class MadeArm:
    """A robot on such a bus; LeRobot takes its port for open, whatever happens to it."""

    is_calibrated = True

    def __init__(self):
        self.bus, self.is_connected, self.acted = Bus(Motors()), False, []

    def connect(self, calibrate):
        self.is_connected = True

    def disconnect(self):
        raise OSError(5, "Input/output error")

    def get_observation(self):
        if self.bus.is_dead:
            raise OSError(5, "Input/output error")
        return {"shoulder.pos": 7.0, "elbow.pos": 8.0}

    def send_action(self, action):
        assert not self.acted, action
        self.acted.append((action, list(self.bus.done)))


@pytest.fixture
def served():
    made = []

    def make():
        made.append(MadeArm())
        return made[-1]

    served = ServedRobot(make)
    served.arms = made
    with own_priority():
        served.connect()
        yield served


def test_a_cable_that_was_out_is_opened_again_since_lerobot_takes_its_port_for_open(served):
    first = served.arms[0]
    first.bus.is_dead = True
    with pytest.raises(OSError, match="Input/output"):
        served.observe()
    served.connect()
    assert len(served.arms) == 2 and served.arms[1].is_connected
    assert served.observe()["positions"] == {"shoulder": 7.0, "elbow": 8.0}


def test_motors_whose_power_failed_are_named_and_hold_where_they_are_with_consent(served):
    bus = served.arms[0].bus
    bus.is_dead = True
    with pytest.raises(OSError, match="Input/output"):
        served.observe()
    time.sleep(1.1 * DIP)
    bus.is_dead, bus.torque["elbow"] = False, 0
    for _ in range(2):  # for as long as nobody consents
        with pytest.raises(RuntimeError, match=r"elbow: no torque: the power failed.*consent"):
            served.observe()
    served.connect()
    (action, done), *_ = served.arms[0].acted
    assert action == {"shoulder.pos": 7.0, "elbow.pos": 8.0} and done == [], "goals come before the torque"
    assert bus.done == ["off", "on"] and bus.torque == {"shoulder": 1, "elbow": 1}
    assert served.observe()["positions"]


def test_an_overload_is_ended_and_a_supply_that_stays_low_is_named(served):
    bus = served.arms[0].bus
    bus.status["elbow"] = 0x20
    served.connect()
    assert bus.status["elbow"] == 0 and bus.done == ["off", "on"]
    served.arms[0].acted.clear()
    bus.status["shoulder"] = 0x01
    with pytest.raises(RuntimeError, match="shoulder: its supply voltage is out of range; check"):
        served.connect()


def test_one_lost_answer_asks_nothing_else_of_the_motors(served):
    bus = served.arms[0].bus
    bus.is_dead = True
    with pytest.raises(OSError, match="Input/output"):
        served.observe()
    bus.is_dead, bus.torque["elbow"] = False, 0
    assert served.observe()["positions"], "other registers would only be asked after a while: late answers mix"
