"""A driver without an arm: it measures what it is given, and keeps what it is told."""

import time
from dataclasses import dataclass

import numpy as np

from robot_rl.arm.control_thread import ControlThread
from robot_rl.arm.driver import MOTION
from robot_rl.env.state_assembler import Joints
from robot_rl.errors import ArmStoppedError
from robot_rl.geometry import Pose

DOWN = np.array([0.0, 1.0, 0.0, 0.0])


@dataclass(frozen=True)
class ScriptedArmConfig:
    rate: float = 100.0
    measures_wrench: bool = True


class ScriptedArm:
    """Is at once where it is sent."""

    Config = ScriptedArmConfig

    def __init__(self, config, host):
        self._config, self._host = config, host
        self.pose = Pose(np.array([0.5, 0.0, 0.2]), DOWN)
        self.wrench, self.twist = np.zeros(6), np.zeros(6)
        self.told: list[object] = []
        self.fault: str | None = None
        self.curable = True
        self.silent = False
        self.recovered = self.closed = 0
        self._thread = ControlThread("scripted arm", config.rate, self._measure)

    @property
    def measures(self):
        return MOTION | ({"wrench"} if self._config.measures_wrench else set())

    def start(self, receive):
        self._receive = receive
        self._thread.start()

    def _measure(self):
        if self.silent:
            return
        stamp = self._host.wall.now()
        self._receive("twist", stamp, self.twist)
        self._receive("joints", stamp, Joints(np.zeros(6), np.zeros(6)))
        if self._config.measures_wrench:
            self._receive("wrench", stamp, self.wrench)
        self._receive("pose", stamp, self.pose)

    def move_to(self, T_base_target):
        self.told.append(T_base_target)
        self.pose = T_base_target

    def move_gripper(self, width):
        self.told.append(width)

    def hold(self):
        self.told.append("hold")

    def faults(self):
        return [self.fault] if self.fault else []

    def recover(self):
        self.recovered += 1
        if self.fault and not self.curable:
            raise ArmStoppedError(f"{self.fault}; switch it on")
        self.fault = None

    def close(self):
        self.closed += 1
        self._thread.close()


def eventually(condition, patience=10.0):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
