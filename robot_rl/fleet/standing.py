"""Where a fleet stands, in a file of the learner's directory that others may read at any time."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot_rl.errors import RunDirectoryError
from robot_rl.fleet.fleet_learner import FleetLearner
from robot_rl.fleet.plan import FleetPlan
from robot_rl.system.atomic_file import to_json, write_atomically

STANDING = "fleet.json"
_INTERVAL = 2.0
"""Between two writes [s]."""


class FleetStanding:
    """Writes where a fleet stands.

    Args:
        path: Directory of the learner.
        plan: The fleet.
    """

    def __init__(self, path: Path, plan: FleetPlan) -> None:
        self._path, self._plan, self._then = path / STANDING, plan, float("-inf")
        self._steps = {name: plan.config_of(name).env_steps for name in plan.robots}

    def write(
        self, learner: FleetLearner | None, connected: Sequence[str], wall_time: float, *, now: bool = False
    ) -> None:
        """Write it, unless it was written a moment ago and `now` is false.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        if not now and time.monotonic() - self._then < _INTERVAL:
            return
        self._then = time.monotonic()
        robots = {}
        for name, robot in self._plan.robots.items():
            robots[name] = {
                "connected": name in connected,
                "share": robot.share,
                "episodes": 0 if learner is None else learner.cursors[name].episodes,
                "steps_remembered": 0 if learner is None else learner.steps_of[name],
                "finished": learner is not None and name in learner.finished,
                "of": self._steps[name],
            }
        whole = {
            "env_steps": 0 if learner is None else learner.learner.env_steps,
            "of": sum(self._steps.values()),
            "updates": 0 if learner is None else learner.learner.updates,
            "wall_s": wall_time,
            "robots": robots,
        }
        write_atomically(self._path, to_json(whole, indent=2) + "\n")


def is_finished(path: Path, robot: str, env_steps: int) -> bool:
    """Return whether the learner in a directory has saved all of a robot that has so many steps to play."""
    try:
        row = read_standing(path)["robots"].get(robot, {})
    except RunDirectoryError:
        return False
    return bool(row.get("finished")) and row.get("of") == env_steps


def read_standing(path: Path) -> dict[str, Any]:
    """Read where the fleet in a directory, or of the learner in a directory, stands.

    Raises:
        RunDirectoryError: if there is no fleet, or it has not begun.
    """
    for candidate in (path / STANDING, path / "learner" / STANDING):
        if candidate.is_file():
            try:
                return dict(json.loads(candidate.read_text(encoding="utf-8")))
            except (OSError, ValueError) as error:
                raise RunDirectoryError(f"cannot read {candidate}: {error}") from error
    raise RunDirectoryError(f"{path} holds no fleet whose learner has begun (no {STANDING}); check the path")
