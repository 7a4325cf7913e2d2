"""The run directory of a robot of a fleet: what it played is here, and what was learned from it is not."""

from __future__ import annotations

from pathlib import Path

from robot_rl.errors import RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory

FACT = "fleet_robot"
"""In the provenance of such a run: the robot's name."""


def check_learns(path: Path) -> None:
    """Check that a run has a learner of its own.

    Raises:
        RunDirectoryError: if it has none, or cannot be read.
    """
    if robot := RunDirectory.read_facts(path).get(FACT):
        raise RunDirectoryError(
            f"{path} is what {robot}, a robot of a fleet, recorded; what was learned from it is in the fleet's "
            "directory `learner`: name that in its place"
        )
