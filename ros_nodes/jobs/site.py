"""Where a job of `actor_node` takes place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from robot_rl.run.deployment import Deployment


class Site(NamedTuple):
    """A robot behind topics.

    Attributes:
        deployment: The robot, and who learns.
        lockstep: Whether the simulated time waits for the actor.
        turns: Names of the tasks that take turns in its scene, without resets; empty: there is one task.
    """

    deployment: Deployment
    lockstep: bool
    turns: tuple[str, ...] = ()


Connect = Callable[[], Site]
"""Connects to the robot."""
