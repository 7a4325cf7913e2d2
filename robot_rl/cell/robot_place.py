"""The place of a job that runs on a real arm in this process: who takes part, who judges, which workcell."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from robot_rl.arm.robot_connection import read_connection
from robot_rl.cell.robot_file import RobotFile, crop_facts, read_robot_file
from robot_rl.cell.robot_workcell import RobotWorkcell
from robot_rl.errors import ConfigError
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.commissioning import newest_report

if TYPE_CHECKING:
    from robot_rl.hil.operator_setup import OperatorOptions

logger = logging.getLogger(__name__)
LOST_EPISODES = 5
"""How many episodes in a row may be lost because the robot does not answer, before the run ends."""
ARE_JUDGES = ("classifier", "labels")
"""Values of `reward.kind` that decide about episodes without a person."""


class RobotPlace(NamedTuple):
    """Where a job on an arm takes place, and who assists.

    Attributes:
        robot: The robot file.
        operator: A person, or None.
        deployment: On the arm.
    """

    robot: RobotFile
    operator: OperatorOptions | None
    deployment: Deployment


def judged_place(
    path: Path, task: str, reward: str, operator: OperatorOptions | None, *, attended: bool = True
) -> RobotPlace:
    """Return the place of a job whose episodes are judged.

    Args:
        path: The robot file.
        task: Name of the task.
        reward: `reward.kind` of the run.
        operator: A person by the flags, or None.
        attended: Somebody may be there, so that a person may lead with the devices of the file.

    Raises:
        ConfigError: if the file is not valid, or nobody decides about episodes or makes the scene ready.
    """
    robot = read_robot_file(path.expanduser(), task)
    operator = operator_of(robot, operator) if attended else None
    check_judged(robot, operator, reward)
    return RobotPlace(robot, operator, robot_deployment(robot))


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
        lambda config: robot.task_cameras,
        repeatable=False,
        lost_episodes=LOST_EPISODES,
        can_film=False,
        resume_command=f"robot-rl train --robot {robot.path} --resume --out",
        facts=robot_facts(robot.path),
    )


def robot_facts(path: Path) -> dict[str, Any]:
    """Return what a run records of the robot of a file; warn of one not commissioned as it is now, or with faults.

    Raises:
        ConfigError: if the file is not valid.
    """
    commissioning = newest_report(path)
    _note_commissioning(path, commissioning)
    driver, crops = read_connection(path).driver, crop_facts(path)
    return {"robot_file": str(path.resolve()), "driver": driver, "commissioning": commissioning, "crops": crops}


def _note_commissioning(path: Path, commissioning: dict[str, Any] | None) -> None:
    """Warn of a robot that was not commissioned as it is now, or with faults."""
    command = f"`robot-rl commission {path} --move`"
    if commissioning is None:
        logger.warning(
            "%s was not commissioned: %s finds what is wrong with an arm before a policy does", path, command
        )
    elif commissioning["verdict"] == "fault":
        logger.warning("the newest commissioning of %s found a fault: %s", path, commissioning["path"])
    elif not commissioning["same_robot_file"]:
        logger.warning("%s has changed since it was commissioned; %s repeats that", path, command)
