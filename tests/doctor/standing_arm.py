"""An arm driver in memory that stands, or follows at once, and reports as a test wants it to."""

import threading
from dataclasses import dataclass, replace

import numpy as np

from robot_rl.arm.own_checks import OwnCheck
from robot_rl.env.state_assembler import Joints
from robot_rl.geometry import Pose


@dataclass(frozen=True)
class StandingArmConfig:
    """Settings of the driver."""

    rate: float = 100.0
    """Measurements per second [Hz]."""
    address: str = "10.0.0.2"
    """Where the arm is."""
    desk_password: str = ""
    """For its web page."""


class StandingArm:
    """An `ArmDriver`.

    Args:
        config: Settings.
        host: Its host.
    """

    Config = StandingArmConfig
    measures = frozenset({"pose", "twist", "joints", "wrench", "gripper"})

    def __init__(self, config, host):
        self._config, self._host = config, host
        self._pose = Pose(np.array([0.5, 0.0, 0.25]), np.array([0.0, 1.0, 0.0, 0.0]))
        self._width, self._random = 0.08, np.random.default_rng(0)
        self._ended, self._thread = threading.Event(), None

    def start(self, receive):
        self._receive = receive
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._ended.wait(1.0 / self._config.rate):
            stamp = self._host.wall.now()
            self._receive("pose", stamp, self._pose)
            self._receive("twist", stamp, np.zeros(6))
            self._receive("wrench", stamp, 0.1 * self._random.standard_normal(6))
            self._receive("joints", stamp, Joints(np.zeros(7), np.zeros(7)))
            self._receive("gripper", stamp, self._width)

    def move_to(self, T_base_target):
        self._pose = replace(self._pose, position=T_base_target.position)

    def move_gripper(self, width):
        self._width = min(width, 0.08)

    def hold(self):
        pass

    def faults(self):
        return []

    def recover(self):
        pass

    def own_checks(self):
        return [OwnCheck("firmware", "ok", "version 5.9", 5.9, limit="at least 5.9")]

    def close(self):
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
