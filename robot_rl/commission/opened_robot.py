"""The robot of a file, opened in this process for trials, and let go afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import ArmDriver, DriverHost
from robot_rl.arm.robot_connection import read_connection
from robot_rl.arm.set_point.set_point_path import chosen
from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError


@contextlib.contextmanager
def open_robot(path: Path, *, sample: float = 0.02) -> Iterator[ArmUnderTrial]:
    """Open the arm of a robot's file, without its cameras; in the end it holds and is let go.

    Args:
        path: The file.
        sample: Time between two samples of a trial [s].

    Raises:
        ConfigError: if the file is wrong.
        ArmStoppedError: if the arm cannot be reached, or stops in a trial.
    """
    robot = read_connection(path)
    made: list[ArmDriver] = []

    def make(host: DriverHost) -> ArmDriver:
        made.append(robot.make_driver(host))
        return made[0]

    fresh = Freshness(max_age=robot.max_age)
    io = ArmRobotIO(make, robot.limits, robot.cap, freshness=fresh, interpolation=robot.interpolation)

    def check() -> None:
        if (reason := io.stopped) is not None:
            raise ArmStoppedError(f"the arm has stopped: {reason}")

    try:
        yield ArmUnderTrial(
            io,
            io.wall,
            robot.limits,
            measures_wrench=io.measures_wrench,
            has_gripper="gripper" in made[0].measures,
            sample=sample,
            check=check,
            interpolation=chosen(robot.interpolation, made[0]),
            interpolate=io.interpolate,
        )
    finally:
        io.close()
