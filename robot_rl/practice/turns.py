"""Whose turn it is in a practice, and when nobody can go on without a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from robot_rl.unattended.person_needed import fruitless


@dataclass
class Turns:
    """The order of the tasks of a practice.

    After a success it is the turn of the next task, after a failure that of the same one. A task that cannot begin in
    the scene as it is passes its turn on.

    Attributes:
        tasks: Their names, in order.
        patience: Robot time without a success, in the episodes of all tasks, after which the practice is stuck [s].
        next: Whose turn it is.
        fruitless_s: Robot time since the last success [s].
    """

    tasks: Sequence[str]
    patience: float
    next: str = ""
    fruitless_s: float = 0.0

    def __post_init__(self) -> None:
        """Begin with the first task."""
        self.next = self.next or self.tasks[0]

    def after(self, task: str, *, success: bool, seconds: float) -> None:
        """Take note of an episode of a task, which took that long [s]."""
        self.fruitless_s = 0.0 if success else self.fruitless_s + seconds
        self.next = self.tasks[(self.tasks.index(task) + success) % len(self.tasks)]

    def stuck(self, obstacles: Mapping[str, str | None]) -> str | None:
        """Return why only a person can help, or None after the turn has passed to a task that can begin.

        Args:
            obstacles: Why each task cannot begin; None if it can.
        """
        if (trouble := fruitless(self.fruitless_s, self.patience)) is not None:
            return trouble
        first = self.tasks.index(self.next)
        for task in (*self.tasks[first:], *self.tasks[:first]):
            if obstacles[task] is None:
                self.next = task
                return None
        return "; ".join(f"{task} cannot begin: {obstacles[task]}" for task in self.tasks)

    def helped(self) -> None:
        """Be patient again, as a person has made the scene ready."""
        self.fruitless_s = 0.0
