"""A leader arm as a `Device`, moved by hand: SO-101, SO-100 or Koch here, on the same bus as the followers."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from robot_rl.arm.joints.joint_port import JointReading
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.servo.servo_arm import ServoArm, ServoArmConfig, So101, So101Config, open_joints
from robot_rl.clock import NS_PER_S, SystemClock, WallClock
from robot_rl.config.load import load_component
from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose
from robot_rl.teleop.device import DeviceError, DeviceLostError, Reading
from robot_rl.teleop.leader.leader_following import LeaderFollowing, LeaderStage, LeaderView

logger = logging.getLogger(__name__)

SETTINGS = "ROBOT_RL_LEADER"
"""Environment variable with the path of the file of the leader's settings."""
PERIOD = 0.01
"""Between two measurements [s]."""
AGE_LIMIT = 0.3
"""Age at which the newest measurement counts as lost [s]."""
CLOSED, OPENED = 0.35, 0.65
"""Openings of its gripper below and above which it is closed and open."""
PRESS = 0.3
"""How long closing and opening are reported [s]."""
_BUTTONS = ("close", "open", "aligned")
Config = TypeVar("Config")


class LeaderJoints(Protocol):
    """The joints of a leader arm, which a person moves."""

    def read(self) -> JointReading:
        """Measure.

        Raises:
            RobotLostError: if it does not answer. A later call tries again.
        """
        ...

    def close(self) -> None:
        """Release it; doing it twice is fine."""
        ...


class LeaderArm:
    """A leader arm, whose motors are switched off so that a person can move it.

    Args:
        joints: Its joints.
        chain: The kinematics that its angles belong to.
        name: For people.

    Raises:
        RobotLostError: if a servo is not there.
    """

    kind = "leader"
    axes = ("x", "y", "z", "roll", "pitch", "yaw")
    buttons = _BUTTONS

    def __init__(self, joints: LeaderJoints, chain: Chain, name: str) -> None:
        self.name, self._chain, self._clock = name, chain, SystemClock()
        self._joints = joints
        self._following = LeaderFollowing()
        self._tool: Pose | None = None
        self._pose, self._speed, self._opening, self._stamp = Pose.identity(), 0.0, 1.0, 0
        self._error = "it has not been measured yet"
        self._was_closed: bool | None = None
        self._changed = -math.inf
        self._stage = LeaderStage.ALIGNED
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leader", daemon=True)
        try:
            self._measure()
        except BaseException:
            joints.close()
            raise
        self._thread.start()

    def observe(self, T_base_tcp: Pose) -> None:
        """Take note of where the tool of the arm is; see `ToolObserver`."""
        self._tool = T_base_tcp

    def read(self) -> Reading:
        """Return what it wants: nothing, until it was brought to the arm's pose and moved on from there.

        Raises:
            DeviceLostError: if it has not answered for 0.3 s.
        """
        now = self._clock.now()
        if (now - self._stamp) / NS_PER_S > AGE_LIMIT:
            raise DeviceLostError(f"{self.name}: {self._error}")
        if self._tool is None:  # nobody has an arm: a test of the device
            return Reading(self._stamp, np.zeros(6), (*self._gripper(now, leads=True), False))
        view = self._following.view(self._pose, self._tool, self._speed, now)
        self._show(view)
        leads = view.stage is LeaderStage.LEADING
        return Reading(self._stamp, view.axes, (*self._gripper(now, leads), view.stage is not LeaderStage.APART))

    def close(self) -> None:
        """Release it; doing it twice is fine."""
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join(1.0)
        self._joints.close()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD):
            try:
                self._measure()
            except RobotRLError as error:
                self._error = str(error)

    def _measure(self) -> None:
        reading = self._joints.read()
        self._pose = self._chain.pose(reading.position)
        self._speed = float(np.abs(reading.velocity).max())
        self._opening = reading.opening if reading.opening is not None else 1.0
        self._stamp = self._clock.now()

    def _gripper(self, now: int, leads: bool) -> tuple[bool, bool]:
        """Return whether closing and opening are reported: for a moment after a change, or after it began to lead."""
        if not leads:
            self._was_closed = None
            return False, False
        closed = self._opening < CLOSED if self._was_closed is not True else self._opening < OPENED
        if closed != self._was_closed:
            self._was_closed, self._changed = closed, now / NS_PER_S
        is_recent = now / NS_PER_S - self._changed < PRESS
        return is_recent and closed, is_recent and not closed

    def _show(self, view: LeaderView) -> None:
        if view.stage is self._stage:
            return
        self._stage = view.stage
        if view.stage is LeaderStage.APART:
            logger.warning(
                "%s is %.0f cm and %.0f deg away from the arm: bring it there to take over",
                self.name,
                100.0 * view.distance,
                math.degrees(view.angle),
            )
        else:
            logger.info("%s is %s", self.name, view.stage)


def open_so101_leader() -> LeaderArm:
    """Open an SO-101 leader arm.

    Raises:
        DeviceError: if its settings are missing or wrong, or it is not there.
    """
    return _open(So101, So101Config, "SO-101 leader")


def open_servo_leader() -> LeaderArm:
    """Open another leader arm of servos, whose kinematics are in a URDF file.

    Raises:
        DeviceError: if its settings are missing or wrong, or it is not there.
    """
    return _open(ServoArm, ServoArmConfig, "leader arm")


def open_leader(config_type: type[Config], name: str, make: Callable[[Config], LeaderArm]) -> LeaderArm:
    """Open a leader arm whose settings are in the file that `ROBOT_RL_LEADER` names.

    Args:
        config_type: Dataclass of the settings.
        name: For people.
        make: Opens it.

    Raises:
        DeviceError: if its settings are missing or wrong, or it is not there.
    """
    path = os.environ.get(SETTINGS, "")
    if not path:
        raise DeviceError(
            f"no {name} is set up: {SETTINGS} has to be the path of a YAML file with its settings, such as the line "
            "`port: /dev/serial/by-id/NAME`"
        )
    try:
        return make(load_component(config_type, Path(path).expanduser()))
    except RobotRLError as error:
        raise DeviceError(f"the {name} cannot be used: {error}") from error


def _open(arm: type[ServoArm], config_type: type[ServoArmConfig], name: str) -> LeaderArm:
    def make(config: ServoArmConfig) -> LeaderArm:
        chain = arm.chain_of(config)
        return LeaderArm(open_joints(config, WallClock(), moved_by_hand=True), chain, name)

    return open_leader(config_type, name, make)
