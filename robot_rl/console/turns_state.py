"""The state of a job whose tasks take turns on one robot, as pages show it: whose turn it is, and how each one learns.

Episodes of different tasks have the same names, so pages see them with the name of their task before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from robot_rl.console.job_state import JobState
from robot_rl.env.task import TaskSpec

OF_TASK = ":"
"""Between the name of a task and that of its episode."""


def shown_name(task: str, episode_id: str) -> str:
    """Return the name of an episode of a task, as pages see it."""
    return f"{task}{OF_TASK}{episode_id}"


def own_name(shown: str) -> tuple[str, str]:
    """Return the task, empty where there is only one, and the name of an episode that pages see under that name."""
    task, _, episode_id = shown.rpartition(OF_TASK)
    return task, episode_id


class TurnsState(JobState):
    """The state of such a job. Episodes and messages are in one list; facts, curves and rates are of whose turn it is.

    Args:
        spec: The task that begins.
        steps: Env steps of all tasks together.
    """

    def __init__(self, spec: TaskSpec, steps: int) -> None:
        super().__init__("training", spec, steps)
        self._steps = steps
        self._own = dict[str, JobState]()
        self.join(spec)
        self._turn = spec.name
        self._turns = 0  # so far; with each, pages see other curves

    def join(self, spec: TaskSpec) -> None:
        """Add a task."""
        self._own[spec.name] = JobState("training", spec, self._steps)
        for one in self._own.values():
            one.job["turns"] = list(self._own)

    def turn(self, task: str) -> None:
        """Set whose turn it is."""
        self._turns += task != self._turn
        self._turn = task

    def listener(self, task: str) -> Callable[[str, int, Mapping[str, Any]], None]:
        """Return what takes the metrics of a task."""
        return partial(self._take, task)

    def _take(self, task: str, kind: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Take a record of the metrics of a task; its episodes are of the job, too."""
        self._own[task].metric(kind, env_step, values)
        if kind == "episode":
            self.metric(kind, env_step, values)

    def named(self, episode_id: str) -> str:
        """Return the name under which pages see an episode of the task whose turn it is."""
        return shown_name(self._turn, episode_id)

    def state(self) -> dict[str, Any]:
        """Return everything that changes often; steps and the price of the person are those of all tasks."""
        own = {task: one.state() for task, one in self._own.items()}
        figures = [one["health"] for one in own.values()]
        health = dict(own[self._turn]["health"])
        health["env_step"] = sum(one.get("env_step", 0) for one in figures)
        person = Counter[str]()
        for one in figures:
            person.update(one.get("person", {}))
        if person:
            health["person"] = dict(person)
        version = self._turns + sum(one["curves_version"] for one in own.values())
        return {**super().state(), "health": health, "curves_version": version}

    def curves(self) -> dict[str, Any]:
        """Return the points of the curves of whose turn it is."""
        return self._own[self._turn].curves()

    @property
    def job(self) -> dict[str, Any]:
        """The facts of whose turn it is."""
        return self._own[self._turn].job
