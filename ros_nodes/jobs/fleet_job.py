"""The job of `actor_node` as one robot of a fleet: it plays behind topics, the fleet's learner learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.config.components import TrainConfig
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.errors import ConfigError
from robot_rl.fleet.access import FleetAddress, fleet_token
from robot_rl.fleet.plan import read_plan
from robot_rl.fleet.robot_port import FleetMember
from robot_rl.fleet.robot_run import run_robot
from robot_rl.run.directory.run_directory import RunDirectory
from ros_nodes.jobs.site import Connect


def train_with_fleet(given: ActorNodeConfig, connect: Connect, log: Callable[[str], object]) -> list[str]:
    """Play the part of one robot, or continue it; return its result, line by line.

    Args:
        given: The parameters of the node.
        connect: Connects to the robot.
        log: Receives notes, one sentence each.

    Raises:
        ConfigError: if a parameter is missing, or does not go with the fleet file.
        LinkError: if the learner refuses the robot, or is away at the end.
        RobotRLError: for whatever else a user can cause or cure.
    """
    plan, address = read_plan(Path(given.fleet)), FleetAddress(given.fleet_learner)
    config = plan.config_of(given.fleet_robot)
    _check_settings(given, config)
    path = Path(given.out)
    resume = RunDirectory.holds_run(path)
    if resume:
        log(f"continues the run in {path}")
    member = FleetMember(given.fleet_robot, address, fleet_token(address))
    deployment, lockstep, _ = connect()
    if config.realtime == lockstep:
        kept = "false, since its simulated time waits" if lockstep else "true, and processes to 2, as no arm waits"
        has = f"robot {given.fleet_robot} of {given.fleet} has realtime={str(config.realtime).lower()}"
        raise ConfigError(f"{has}: set it to {kept}")
    summary = run_robot(plan, member, path, resume=resume, command=deployment.resume_command, deployment=deployment)
    return [*summary_lines(summary), f"run directory: {path}"]


def _check_settings(given: ActorNodeConfig, config: TrainConfig) -> None:
    """Refuse settings beside those of a fleet file.

    Raises:
        ConfigError: naming them.
    """
    if not given.out:
        raise ConfigError(f"a robot of the fleet {given.fleet} needs out:=DIRECTORY, of its run")
    settings = dict(setting.partition("=")[::2] for setting in given.settings)
    if settings.get("task", config.task) != config.task:
        raise ConfigError(f"the nodes are for the task {settings['task']}, {given.fleet} for {config.task}; set task")
    own = [key for key in settings if key not in ("task", "seed", "device")]
    if given.config or given.demos or own:
        what = ", ".join([*(name for name in ("config", "demos") if getattr(given, name)), *own])
        raise ConfigError(f"{what} beside fleet={given.fleet}: settings of a fleet stand in its file, under `train`")
