"""Any arm of LeRobot as an `ArmDriver`: joints in and out through LeRobot, set-points of the tool by our kinematics."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.joints.joint_arm import JointArm, JointArmConfig
from robot_rl.arm.joints.joint_port import JointReading
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.arm.kinematics.urdf import chain_from_urdf
from robot_rl.arm.lerobot import server
from robot_rl.clock import NS_PER_S, Clock
from robot_rl.config.field_types import STRICT, PositiveReal
from robot_rl.config.yaml_file import parse_yaml
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError
from robot_rl.system.line_process import LineProcess, NoAnswerError

START_LIMIT = 120.0
"""Longest time to import LeRobot and to connect the robot [s]."""
FULL_OPENING = 100.0
"""What LeRobot counts for an open gripper; 0 is closed."""
VELOCITY_TIME = 0.03
"""Time constant of the low-pass on differences of positions [s]."""
UNCERTAIN = 0.25
"""A measurement counts for the velocity if it took less than this share of the time since the one before: nobody knows
when in between the positions were read."""
_UNITS = {"degrees": math.pi / 180.0, "radians": 1.0}


@dataclass(frozen=True, config=STRICT)
class LeRobotArmConfig(JointArmConfig):
    """An arm of LeRobot."""

    rate: PositiveReal = 50.0
    """Measurements and commands per second [Hz]."""
    python: str = ""
    """The Python in which LeRobot is installed, e.g. `~/lerobot/.venv/bin/python`."""
    robot: str = "so101_follower"
    """LeRobot's type of the robot, also of a plug-in."""
    settings: tuple[str, ...] = ()
    """Settings of LeRobot's own, `NAME=VALUE` each, e.g. `port=/dev/ttyACM0` and `id=my_arm`; no cameras."""
    joint_names: tuple[str, ...] = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
    """The joints from the base, as LeRobot and the URDF file call them."""
    gripper_name: str = "gripper"
    """LeRobot's name of the gripper; empty: there is none."""
    units: Literal["degrees", "radians"] = "degrees"
    """What LeRobot counts joints in; ranges of -100 to 100 are no angles, and of no use here."""
    urdf: str = ""
    """URDF file with the kinematics; an SO-101 needs none."""
    tip: str = "gripper_frame_link"
    """Link of the URDF file whose frame is the tcp's."""
    timeout: PositiveReal = 2.0
    """Longest time for an answer of LeRobot [s]; then it counts as hung, and its process is ended. An arm of which
    nothing is measured holds long before that (`max_age`)."""


class LeRobotArm(JointArm):
    """An arm of LeRobot.

    Args:
        config: Its settings.
        host: The program that runs it.

    Raises:
        ConfigError: if a setting is not valid, also one of LeRobot's.
    """

    Config = LeRobotArmConfig

    def __init__(self, config: LeRobotArmConfig, host: DriverHost) -> None:
        if config.urdf:
            chain = chain_from_urdf(Path(config.urdf), config.tip, config.joint_names)
        elif config.robot == "so101_follower":
            chain = so101_chain()
        else:
            raise ConfigError(
                f"the kinematics of {config.robot} are needed: `urdf`, the path of a URDF file, and `tip`"
            )
        super().__init__(LeRobotJoints(config, chain, host.wall), chain, config, host)


class LeRobotJoints:
    """The motors of an arm behind LeRobot, as a `JointPort`.

    Args:
        config: Its settings.
        chain: The kinematics, which has the limits.
        clock: Time since 1970 [ns].

    Raises:
        ConfigError: if LeRobot cannot be started, has no such robot, or it has other joints.
    """

    resolution = 2.0 * math.pi / 4096
    """Of the servos of these arms."""

    def __init__(self, config: LeRobotArmConfig, chain: Chain, clock: Clock) -> None:
        self._config, self._clock, self._unit = config, clock, _UNITS[config.units]
        self.limits = (chain.low, chain.high)
        self.has_gripper = bool(config.gripper_name)
        self._names = (*config.joint_names, *((config.gripper_name,) if config.gripper_name else ()))
        self._settings = _settings(config.settings)
        self._process: LineProcess | None = None
        self._velocity: np.ndarray | None = None  # None before the first measurement
        self._before, self._sampled = np.zeros(0), 0  # the newest positions that count for it, and when that was [ns]
        self._fault: str | None = None
        try:
            self._start()
        except RobotLostError as error:
            self.close()
            raise ConfigError(str(error)) from error

    def engage(self) -> JointReading:
        """Connect the robot, whose motors LeRobot switches on, and command the positions at which they are.

        Raises:
            RobotLostError: if it does not work.
        """
        if self._process is None:
            self._start()
        self._call("connect", START_LIMIT)
        self._velocity = None
        here = self.read()
        self.write(here.position, here.opening)
        self._fault = None
        return here

    def read(self) -> JointReading:
        """Measure; velocities are low-passed differences of positions.

        Raises:
            RobotLostError: if LeRobot or the robot does not answer.
        """
        answer = self._call("observe", self._config.timeout)
        found, began, ended = answer["positions"], answer["began"], answer["ended"]
        stamp = self._clock.now() - (time.monotonic_ns() - began)
        if missing := [name for name in self._names if name not in found]:
            raise RobotLostError(f"LeRobot does not measure {', '.join(missing)}")
        position = np.array([found[name] for name in self._config.joint_names]) * self._unit
        if not np.isfinite(position).all():
            raise RobotLostError(f"LeRobot measures {found}")
        opening = found[self._config.gripper_name] / FULL_OPENING if self.has_gripper else None
        return JointReading(stamp, position, self._filtered(position, began, ended), opening)

    def write(self, position: np.ndarray, opening: float | None) -> None:
        """Command positions.

        Raises:
            RobotLostError: if LeRobot or the robot does not answer.
        """
        goals = dict(zip(self._config.joint_names, (position / self._unit).tolist(), strict=True))
        if opening is not None and self.has_gripper:
            goals[self._config.gripper_name] = FULL_OPENING * opening
        self._call("act", self._config.timeout, goals=goals)

    def faults(self) -> Sequence[str]:
        """Return why LeRobot's process has to be started again."""
        return [self._fault] if self._fault is not None else []

    def close(self) -> None:
        """Disconnect the robot; whether its motors hold is LeRobot's `disable_torque_on_disconnect`, off by default."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _start(self) -> None:
        config = self._config
        python = Path(config.python).expanduser()
        if not config.python or not python.exists():
            raise ConfigError(
                f"python: {config.python or 'not set'}; name the Python in which LeRobot is installed, e.g. "
                "~/lerobot/.venv/bin/python"
            )
        try:
            self._process = LineProcess([str(python), str(Path(server.__file__))])
        except OSError as error:
            raise ConfigError(f"python: {python} cannot be started: {error.strerror}") from error
        joints = self._call("make", START_LIMIT, robot=config.robot, settings=self._settings)
        if missing := [name for name in self._names if name not in joints]:
            raise ConfigError(f"{config.robot} has no joint {', '.join(missing)}; it has {', '.join(joints)}")

    def _filtered(self, position: np.ndarray, began: int, ended: int) -> np.ndarray:
        """Return the velocity, low-passed; the positions were read between two times [ns]."""
        sampled = (began + ended) // 2
        elapsed = (sampled - self._sampled) / NS_PER_S
        if self._velocity is None:
            self._velocity = np.zeros(position.shape)
        elif (ended - began) / NS_PER_S >= UNCERTAIN * elapsed:
            return self._velocity
        else:
            share = 1.0 - math.exp(-elapsed / VELOCITY_TIME)
            self._velocity = self._velocity + share * ((position - self._before) / elapsed - self._velocity)
        self._before, self._sampled = position, sampled
        return self._velocity

    def _call(self, name: str, limit: float, **arguments: Any) -> Any:
        if self._process is None:
            raise ArmStoppedError(self._fault or "LeRobot's process has ended")
        try:
            answer = self._process.request({"call": name, **arguments}, limit)
        except NoAnswerError as error:
            self._process = None
            self._fault = f"LeRobot's {self._config.robot}: {error}"
            raise ArmStoppedError(self._fault) from error
        if "error" in answer:
            raise RobotLostError(f"LeRobot's {self._config.robot}: {answer['error']}")
        return answer["value"]


def _settings(entries: Sequence[str]) -> dict[str, Any]:
    """Return the settings of LeRobot by name.

    Raises:
        ConfigError: if an entry is not `NAME=VALUE`.
    """
    found: dict[str, Any] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not name or not equals:
            raise ConfigError(f"settings: an entry has to be NAME=VALUE, got {entry!r}")
        found[name] = parse_yaml(value, f"settings, {name}")
    return found
