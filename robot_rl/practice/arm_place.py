"""The place of a practice on one arm: a robot file, its task and the one that leads back, each with its own judge.

It knows robot files and who judges; it does not know how turns are taken, nor drivers.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from robot_rl.cell.robot_file import RobotFile, read_robot_file
from robot_rl.cell.robot_place import ARE_JUDGES, no_demonstrations, operator_of, robot_deployment
from robot_rl.cell.shared_arm import SharedArm
from robot_rl.errors import ConfigError
from robot_rl.practice.place import Configs, PracticePlace

if TYPE_CHECKING:
    from robot_rl.hil.operator_setup import OperatorOptions


def reverse_on_arm(path: Path, task: str, reverse: str | None) -> str:
    """Return the name of the task that leads back from `task`, which the robot file describes.

    Args:
        path: The robot file.
        task: The task.
        reverse: As the user named it; None: whatever the file names.

    Raises:
        ConfigError: if the file describes none, or another one.
    """
    file = read_robot_file(path.expanduser(), task)
    if not file.reverse:
        raise ConfigError(
            f"{path}: names no task that leads back from {task}; add `reverse: NAME` to task, and a section reverse "
            "with what differs, or practise it alone, if it can begin again where it ended (--alone)"
        )
    if reverse is not None and reverse != file.reverse:
        raise ConfigError(f"{path}: the task that leads back is {file.reverse}, not {reverse}; leave --reverse out")
    if file.reverse == task:
        raise ConfigError(f"{path}: {task} is the task that leads back; begin with the one that it leads back from")
    return file.reverse


def operator_on_arm(path: Path, task: str, operator: OperatorOptions | None) -> OperatorOptions | None:
    """Return the person at the arm of a robot file: by the flags, else at the devices of the file, else nobody.

    Raises:
        ConfigError: if the file is not valid.
    """
    return operator_of(read_robot_file(path.expanduser(), task), operator)


def arm_place(
    path: Path, configs: Configs, demos: Mapping[str, object], *, resume: bool, person: bool = False
) -> PracticePlace:
    """Return the place of a practice on the arm of a robot file; nothing is opened.

    Args:
        path: The robot file.
        configs: Of the trainings, in turn.
        demos: Tasks whose demonstrations have been recorded.
        resume: The practice goes on, and has what it began with.
        person: A person takes part, who may judge.

    Raises:
        ConfigError: if the file is not valid for a task, nobody judges one, its demonstrations are missing, or the
            tasks do not meet.
    """
    files = {task: read_robot_file(path.expanduser(), task) for task in configs}
    for task, config in configs.items():
        _check_judge(files[task], config.reward.kind, person=person)
        if config.evaluation.curve_interval or config.evaluation.curve_newest:
            raise ConfigError(
                f"{task}: on an arm a practice makes no learning curve, as its evaluations would need a reset each; "
                "leave evaluation.curve_interval and evaluation.curve_newest out. At the end the policies are "
                "evaluated in turn"
            )
        if config.demonstrations and not (resume or task in demos) and files[task].cell.judge == "person":
            raise no_demonstrations(task, path)
    arm, first = SharedArm(files), next(iter(files.values()))
    deployment = replace(robot_deployment(first), workcell=arm, cameras=lambda config: files[config.task].task_cameras)
    return PracticePlace(
        deployment,
        check=lambda configs: None,  # done above, as it moves nothing
        opened=arm.opened,
        resets=False,
        resume_command=f"robot-rl practice --robot {shlex.quote(str(path))} --resume --out",
    )


def _check_judge(file: RobotFile, reward: str, *, person: bool) -> None:
    """Check that somebody decides about the episodes of a task."""
    if file.cell.judge == "person" and not person and reward not in ARE_JUDGES:
        task = file.task.name
        raise ConfigError(
            f"{file.path}: nobody judges the episodes of {task}: give a person --console or --teleop DEVICE; or let a "
            f"classifier or labels decide (--own {task}:reward.kind=classifier --own {task}:reward.path=FILE), or the "
            "arm (`judge: goal`)"
        )
