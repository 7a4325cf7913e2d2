"""The place of a job that runs on a real arm in this process: who takes part, who judges, which workcell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from robot_rl.cell.robot_file import RobotFile
from robot_rl.cell.robot_workcell import RobotWorkcell
from robot_rl.errors import ConfigError
from robot_rl.run.deployment import Deployment

if TYPE_CHECKING:
    from robot_rl.hil.operator_setup import OperatorOptions

LOST_EPISODES = 5
"""How many episodes in a row may be lost because the robot does not answer, before the run ends."""
ARE_JUDGES = ("classifier", "labels")
"""Values of `reward.kind` that decide about episodes without a person."""


def operator_of(robot: RobotFile, operator: OperatorOptions | None) -> OperatorOptions | None:
    """Return the options of the operator: those of the flags, else the devices of the file, else None."""
    if operator is not None or not robot.cell.devices:
        return operator
    from robot_rl.hil.operator_setup import OperatorOptions

    return OperatorOptions(devices=robot.cell.devices)


def check_judged(robot: RobotFile, operator: OperatorOptions | None, reward: str) -> None:
    """Check that somebody decides about episodes, and makes the scene ready.

    Args:
        robot: The robot file.
        operator: A person, or None.
        reward: `reward.kind` of the run.

    Raises:
        ConfigError: if nobody does.
    """
    cell = robot.cell
    cure = "--console or --teleop DEVICE, or `devices` in cell"
    if operator is None and cell.judge == "person" and reward not in ARE_JUDGES:
        raise ConfigError(
            f"{robot.path}: nobody judges the episodes: give a person {cure}; or let a classifier or labels decide "
            "(reward.kind), or the arm (`judge: goal`)"
        )
    if operator is None and cell.scene == "person":
        raise ConfigError(
            f"{robot.path}: nobody makes the scene ready: give a person {cure}; or set `scene: none` in cell, if the "
            "arm's return to its start is enough"
        )


def no_demonstrations(task: str, path: Path) -> ConfigError:
    """Return the error of a training that would begin with demonstrations that nobody has recorded."""
    return ConfigError(
        f"on a robot, record demonstrations first, `robot-rl demo {task} --robot {path} --out demos`, and give them "
        "with --demos; or do without: --set demonstrations=0"
    )


def robot_deployment(robot: RobotFile) -> Deployment:
    """Return the deployment on the arm of a robot file."""
    return Deployment(
        RobotWorkcell(robot),
        repeatable=False,
        lost_episodes=LOST_EPISODES,
        can_film=False,
        resume_command=f"robot-rl train --robot {robot.path} --resume --out",
    )
