"""The run of one robot of a fleet: a training as any other, whose learner is the fleet's."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from robot_rl.errors import ConfigError
from robot_rl.fleet.plan import FleetPlan, differences
from robot_rl.fleet.robot_port import FleetMember, open_robot_port
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.fleet_robot import FACT
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.train import train

logger = logging.getLogger(__name__)


def run_robot(
    plan: FleetPlan,
    member: FleetMember,
    path: Path,
    *,
    resume: bool,
    command: str,
    deployment: Deployment | None = None,
) -> dict[str, Any]:
    """Run one robot until it has played its part and the learner has saved all of it; return its summary.

    Args:
        plan: The fleet.
        member: Which robot, and where the learner is.
        path: The robot's run directory, with its own episode store.
        resume: Continue the run in that directory. What the robot was killed in is kept as a truncated episode.
        command: That continues it, up to the name of the directory, for messages.
        deployment: Where the robot is; None: a simulation in this process.

    Raises:
        ConfigError: if the run in the directory is of another fleet.
        LinkError: if the learner refuses the robot, or is away at the end.
        InterruptedRunError: after Ctrl-C; the run can be resumed.
        RobotRLError: as `train`.
    """
    config = plan.config_of(member.name)
    if resume:
        of = RunDirectory.read_facts(path).get(FACT)
        if of != member.name:
            raise ConfigError(f"{path} is the run of {of or 'a robot without a fleet'}, not of {member.name}")
        if changed := differences(RunDirectory.read_config(path), config):
            raise ConfigError(f"{path} was made with other settings of {', '.join(changed)}; resume it with its plan")
    place = deployment or Deployment()
    port = partial(open_robot_port, member, path / "episodes", lambda text: logger.info("%s: %s", member.name, text))
    place = replace(
        place,
        port=port,
        repeatable=False,
        resume_command=command,
        facts={**place.facts, FACT: member.name},
    )
    return train(config, path, resume=resume, deployment=place)
