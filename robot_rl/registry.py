"""Finds tasks by name among the entry points of installed packages, so that nothing here imports a simulator or ROS."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import RobotRLError, UnknownNameError

TASK_GROUP = "robot_rl.tasks"


class PluginError(RobotRLError):
    """A task is registered but cannot be loaded."""


def task_names() -> list[str]:
    """Names of all registered tasks."""
    return sorted({point.name for point in entry_points(group=TASK_GROUP)})


def make_workcell(task: str, options: WorkcellOptions | None = None) -> Workcell:
    """The workcell in which a task is done.

    Raises:
        UnknownNameError: if no task, or no camera, of that name exists.
        PluginError: if the package behind it cannot be imported.
        RenderError: if cameras are wanted and this machine cannot render.
    """
    found = list(entry_points(group=TASK_GROUP, name=task))
    if not found:
        raise UnknownNameError("task", task, task_names())
    try:
        make = cast("Callable[[WorkcellOptions], Workcell]", found[0].load())
    except ImportError as error:
        raise PluginError(f"task {task} is registered as {found[0].value} but cannot be imported: {error}") from error
    return make(options or WorkcellOptions())
