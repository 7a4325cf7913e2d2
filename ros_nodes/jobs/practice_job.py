"""The job of `actor_node` that learns a task and its reverse in turn, without resets, with the robot behind topics.

It is `robot-rl practice` at another site. The scene, and what the tasks know of it, are those of `sim_node`; each task
has a learner process of the actor's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from robot_rl.cli.parts.summary_text import practice_lines
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import load_config, load_run_config
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.errors import ConfigError
from robot_rl.practice.files import PracticeFiles, PracticePlan
from robot_rl.practice.place import PracticePlace
from robot_rl.practice.practice import practice
from ros_nodes.jobs.site import Connect


def practise(given: ActorNodeConfig, connect: Connect, log: Callable[[str], object]) -> list[str]:
    """Practise, or continue to; return the result, line by line.

    Args:
        given: The parameters of the node.
        connect: Connects to the robot.
        log: Receives notes, one sentence each.

    Raises:
        ConfigError: if a parameter is missing or does not go with a practice, or no tasks take turns there.
        RobotRLError: for whatever else a user can cause or cure.
    """
    if not given.out:
        raise ConfigError("job:=practice needs out:=DIRECTORY, of the practice")
    if given.fleet:
        raise ConfigError("fleet beside job:=practice: a fleet learns one task; leave fleet out")
    path = Path(given.out)
    resume = PracticeFiles.begun(path)
    deployment, lockstep, tasks = connect()
    if not tasks:
        raise ConfigError(
            "no tasks take turns here: start sim_node with practice:=true, as `robot-rl up practice` does; on an arm, "
            "practise in one process: robot-rl practice TASK --robot FILE"
        )
    if given.learner == "node":
        raise ConfigError("job:=practice has a learner process of the actor's own for each task; set learner:=inside")
    plan = PracticePlan(tasks, given.unattended, 60.0 * given.patience)
    if resume:
        begun = PracticeFiles.read_plan(path)
        if begun.tasks != tasks:
            raise ConfigError(f"{path} practises {' and '.join(begun.tasks)}, here are {' and '.join(tasks)}; set task")
        plan = replace(plan, demos=begun.demos)
        log(f"continues the practice in {path}")
    configs = {task: _config(given, path, task, tasks, resume=resume) for task in tasks}
    configs = {task: replace(config, processes=2, realtime=not lockstep) for task, config in configs.items()}
    place = PracticePlace(
        replace(deployment, assistance=None),  # nobody takes part over topics yet
        check=lambda configs: None,  # a task and the reverse that it names
        resume_command=deployment.resume_command,
        may_move=deployment.may_start,
    )
    summary = practice(configs, path, plan, resume=resume, place=place)
    return [*practice_lines(summary), f"directory: {path}"]


def _config(given: ActorNodeConfig, path: Path, task: str, tasks: tuple[str, ...], *, resume: bool) -> TrainConfig:
    """Return the settings of a task's training.

    Raises:
        ConfigError: if they name a task that is not practised, or are not valid.
    """
    named = [value for key, _, value in (setting.partition("=") for setting in given.settings) if key.strip() == "task"]
    if any(value.strip() not in tasks for value in named):
        raise ConfigError(f"the run is of task {named[-1]}, but those that take turns here are {' and '.join(tasks)}")
    settings, config = [*given.settings, f"task={task}"], Path(given.config) if given.config else None
    if resume:
        return load_run_config(PracticeFiles(path).settings(task), settings, config)
    return load_config(config, settings)
