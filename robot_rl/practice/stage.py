"""The scene that the tasks of a practice share, and the arm's way from the end of one episode to the start of the next.

On a robot the scene stays by itself. In simulation in this process each task has a simulation of its own, and the scene
goes from one to the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.env.environment import SupportsGivingUp
from robot_rl.env.move_arm import go_to_start, move_gripper
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome, Task, TaskSpec, Workcell, WorkcellOptions
from robot_rl.errors import ArmStoppedError, ConfigError
from robot_rl.geometry import Pose
from robot_rl.practice.continues import Continues
from robot_rl.spec import ArraySpec


class ContinuingTask:
    """A task whose episodes begin in the scene as it is, but for those that are reset; a `Task`.

    Args:
        task: The task.

    Attributes:
        resets: Whether the next episodes begin with a reset of the scene.
        own: The task.
        arrived: Called when an episode begins, with the arm at its start.

    Raises:
        ConfigError: if it cannot begin in the scene as it is.
    """

    def __init__(self, task: Task) -> None:
        if not isinstance(task, Continues):
            raise ConfigError(
                f"{task.spec.name} cannot be practised: it cannot begin in the scene that an episode has left"
            )
        self._task: Task = task
        self.own: Continues = task
        self.resets = False
        self.arrived: Callable[[], object] = lambda: None

    @property
    def spec(self) -> TaskSpec:
        """The fixed facts."""
        return self._task.spec

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the specs of what `observe` returns."""
        return self._task.observation_specs()

    def reset(self, seed: int) -> None:
        """Make the scene ready, or the task in the scene as it is."""
        self.arrived()
        if self.resets:
            self._task.reset(seed)
        else:
            self.own.go_on(seed)

    def give_up(self) -> None:
        """Wait for no person any more; see `SupportsGivingUp`."""
        if isinstance(self._task, SupportsGivingUp):
            self._task.give_up()

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the task's own part of the observation."""
        return self._task.observe(state, T_base_reset)

    def evaluate(self, state: RobotState) -> Outcome:
        """Judge a step."""
        return self._task.evaluate(state)


@dataclass
class Place:
    """A task on the stage.

    Attributes:
        cell: Its workcell; that of `task`.
        task: The task.
    """

    cell: Workcell
    task: ContinuingTask


@dataclass
class Stage:
    """The tasks of a practice and the scene that they share.

    Attributes:
        places: By the name of the task, once `workcell` has made it.
        current: Name of the task whose simulation holds the scene; empty: the scene has never been made ready.
        between_s: Time that the arm has moved between episodes [s].
    """

    places: dict[str, Place] = field(default_factory=dict)
    current: str = ""
    between_s: float = 0.0
    _left: int | None = field(default=None, init=False)  # when the arm left for the start of the next episode [ns]

    def workcell(self, make: Callable[[str, WorkcellOptions], Workcell]) -> Callable[[str, WorkcellOptions], Workcell]:
        """Return a maker of workcells whose tasks are on this stage."""

        def made(name: str, options: WorkcellOptions) -> Workcell:
            cell = make(name, options)
            try:
                task = ContinuingTask(cell.task)
            except ConfigError:
                cell.close()
                raise
            placed = replace(cell, task=task, person_resets=False)
            task.arrived = self._arrive
            self.places[name] = Place(placed, task)
            return placed

        return made

    def give_robot(self, name: str, io: RobotIO) -> None:
        """Have a task clear up with another `RobotIO` over the same robot, e.g. one that a person can hold."""
        self.places[name].cell = replace(self.places[name].cell, io=io)

    def obstacles(self) -> Mapping[str, str | None]:
        """Return why each task cannot begin in the scene as it is; None if it can."""
        return {name: place.task.own.obstacle() for name, place in self.places.items()}

    def depart(self) -> None:
        """Count the way to the start of the next episode as between episodes, from now on."""
        self._left = self.places[self.current].cell.clock.now()

    def _arrive(self) -> None:
        if self._left is not None:
            self.between_s += (self.places[self.current].cell.clock.now() - self._left) / NS_PER_S
            self._left = None

    def clear(self, *, tidy: bool) -> bool:
        """Bring the arm to its start pose, with nothing in its fingers, and show the scene to every task.

        A task without a home is brought to its start by its next episode.

        Args:
            tidy: Let the task move what the arm could not get at otherwise.

        Returns:
            True: it is done.

        Raises:
            RobotLostError: if the arm does not get there, or is stopped until a person lets it go on.
        """
        cell, own = self.places[self.current].cell, self.places[self.current].task.own
        if cell.stops is not None and (reason := cell.stops.stopped) is not None:
            raise ArmStoppedError(f"the arm is stopped: {reason}")
        spec, since = cell.task.spec, cell.clock.now()
        if spec.gripper:
            move_gripper(cell.io, cell.clock, spec.gripper_open_width)
        if own.home is not None:
            go_to_start(cell.io, cell.clock, own.home)
        if tidy:
            own.tidy(cell.io, cell.clock)
        self.between_s += (cell.clock.now() - since) / NS_PER_S
        self._show(cell)
        return True

    def save(self) -> list[float] | None:
        """Return the scene, for `restore`; None on a robot, or before it has been made ready."""
        if not self.current or (scene := self.places[self.current].cell.scene) is None:
            return None
        return [float(value) for value in scene.save()]

    def restore(self, current: str, scene: list[float] | None) -> None:
        """Go on from a saved scene, which was that of the task `current`.

        Raises:
            ConfigError: if it is that of another scene.
        """
        self.current = current
        if scene is not None:
            for place in self.places.values():
                if place.cell.scene is not None:
                    place.cell.scene.restore(np.array(scene))

    @contextlib.contextmanager
    def resetting(self, name: str) -> Iterator[None]:
        """Let the episodes of a task begin with resets inside the context; the scene is put back on exit."""
        place = self.places[name]
        scene, before = place.cell.scene, place.task.resets
        saved = None if scene is None or not self.current else scene.save()
        place.task.resets = True
        try:
            yield
        finally:
            place.task.resets = before
            if scene is not None and saved is not None:
                scene.restore(saved)

    def _show(self, cell: Workcell) -> None:
        """Have every other simulation go on from the scene of `cell`; behind topics, tasks share one."""
        others = [place.cell.scene for place in self.places.values() if place.cell.scene not in (None, cell.scene)]
        if cell.scene is None or not others:
            return
        saved = cell.scene.save()
        for scene in others:
            scene.restore(saved)
