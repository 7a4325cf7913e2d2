"""Tasks of a practice that take turns in one simulated scene: whose turn it is, and how the scene is handed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from std_srvs.srv import Trigger

from robot_rl.clock import Clock
from robot_rl.env.task import Scene, Workcell
from robot_rl.errors import ConfigError, LinkError, RobotLostError, UnknownNameError
from robot_rl.practice.continues import Continues
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import EpisodeStarted, SceneReport, TaskTurn, from_text, to_text
from ros_nodes.node.robot_node_base import RobotNode


@dataclass(frozen=True)
class AttentiveClock:
    """A clock on which a long motion sleeps without leaving everybody else in the dark.

    Attributes:
        clock: The clock.
        meanwhile: Called after every sleep.
    """

    clock: Clock
    meanwhile: Callable[[], None]

    def now(self) -> int:
        """Return its time [ns]."""
        return self.clock.now()

    def sleep_until(self, stamp: int) -> None:
        """Sleep until `stamp` [ns]."""
        self.clock.sleep_until(stamp)
        self.meanwhile()


class _Turn(NamedTuple):
    """A task with its simulation."""

    cell: Workcell
    task: Continues
    scene: Scene


class SimTurns:
    """The tasks; each has a simulation of its own, and the scene goes from one to the next.

    Args:
        cells: Their workcells, by name; the first one begins, and has the scene.

    Attributes:
        current: Whose turn it is.

    Raises:
        ConfigError: if one of them cannot begin in the scene as it is.
    """

    def __init__(self, cells: Mapping[str, Workcell]) -> None:
        self._turns = {name: _turn(cell) for name, cell in cells.items()}
        self.current = next(iter(self._turns))

    @property
    def cell(self) -> Workcell:
        """The workcell of the task whose turn it is."""
        return self._turns[self.current].cell

    @property
    def task(self) -> Continues:
        """The task whose turn it is, as it begins in the scene as it is."""
        return self._turns[self.current].task

    def facts(self) -> tuple[TaskTurn, ...]:
        """Return the facts of all tasks, in turn."""
        return tuple(
            TaskTurn(turn.cell.task.spec, dict(turn.cell.task.observation_specs()), turn.task.home)
            for turn in self._turns.values()
        )

    def take(self, task: str) -> int:
        """Have it be the turn of another task, in the scene as it is.

        Returns:
            The time of its simulation when it took the scene over [ns].

        Raises:
            ConfigError: if it takes no turns here.
        """
        if task not in self._turns:
            raise ConfigError(str(UnknownNameError("task of this practice", task, self._turns)))
        taken, scene = self._turns[task].cell.clock.now(), self._turns[self.current].scene
        self._turns[task].scene.restore(scene.save())
        self.current = task
        return taken

    def report(self) -> SceneReport:
        """Return the scene, and why each task cannot begin in it."""
        saved, obstacles = self._turns[self.current].scene.save(), {}
        for name, turn in self._turns.items():
            if name != self.current:
                turn.scene.restore(saved)
            obstacles[name] = turn.task.obstacle()
        return SceneReport([float(value) for value in saved], obstacles)

    def restore(self, text: str) -> None:
        """Put a scene back that `report` has returned, as text.

        Raises:
            ConfigError: if it is none, or that of another scene.
        """
        try:
            report = from_text(SceneReport, text)
        except LinkError as error:
            raise ConfigError(f"scene has to be an answer of {topics.SCENE[0]}: {error}") from error
        self._turns[self.current].scene.restore(np.array(report.scene))

    def serve(
        self,
        node: RobotNode,
        seed: Callable[[], int],
        *,
        begin: Callable[[], EpisodeStarted],
        look: Callable[[], int],
        meanwhile: Callable[[], None],
    ) -> None:
        """Offer the services of a practice.

        Args:
            node: Whose services.
            seed: Returns the seed of the next episode.
            begin: Begins an episode in the scene that is ready.
            look: Publishes how everything is, and returns the stamp of that [ns].
            meanwhile: Called again and again while the arm tidies up by itself.
        """

        def go_on() -> str:
            if (obstacle := self.task.obstacle()) is not None:  # the simulation was started again in between
                raise RobotLostError(f"{self.current} cannot begin in the scene as it is: {obstacle}")
            self.task.go_on(seed())
            return to_text(begin())

        def tidy() -> str:
            self.task.tidy(self.cell.io, AttentiveClock(self.cell.clock, meanwhile))
            return str(look())

        for (name, kind), act in (
            (topics.GO_ON, go_on),
            (topics.TIDY, tidy),
            (topics.SCENE, lambda: to_text(self.report())),
        ):
            node.create_service(kind, name, partial(_answer, act))

    def close(self) -> None:
        """Close all workcells."""
        for turn in self._turns.values():
            turn.cell.close()


def _answer(act: Callable[[], str], request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
    del request  # holds nothing
    try:
        response.success, response.message = True, act()
    except RobotLostError as error:  # the simulated arm did not get where it should
        response.success, response.message = False, str(error)
    return response


def _turn(cell: Workcell) -> _Turn:
    if not isinstance(cell.task, Continues) or cell.scene is None:
        name = cell.task.spec.name
        raise ConfigError(f"{name} cannot be practised: it cannot begin in the scene that an episode has left")
    return _Turn(cell, cell.task, cell.scene)
