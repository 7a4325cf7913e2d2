"""One open arm, with one set of cameras, on which several tasks of a robot file take turns.

It knows which frames the tasks want and where the arm may begin; it does not know whose turn it is, nor
what is learned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.cell.robot_file import RobotFile
from robot_rl.cell.robot_workcell import check_forces, open_arm, workcell_on
from robot_rl.cell.tcp_region import MARGIN, TcpRegion, check_regions_meet
from robot_rl.env.task import TaskSpec, Workcell, WorkcellOptions
from robot_rl.errors import ConfigError, StaleStateError, StepOrderError, UnknownNameError


class SharedArm:
    """Makes the workcells of tasks on one arm, between `opened` and its end.

    Args:
        files: What the robot file is for each task; the first one begins, and has a start pose.

    Raises:
        ConfigError: if the tasks do not meet.
    """

    def __init__(self, files: Mapping[str, RobotFile]) -> None:
        self._files = dict(files)
        self._first = next(iter(self._files.values()))
        self._io: ArmRobotIO | None = None
        for file in self._files.values():
            check_regions_meet(self._first.task, file.task)

    @contextlib.contextmanager
    def opened(self, wanted: Mapping[str, WorkcellOptions]) -> Iterator[None]:
        """Open the arm, and all cameras that a task wants; on exit the arm holds, and is released.

        Args:
            wanted: What each task observes.

        Raises:
            ConfigError: if two tasks want frames of other sizes, or a task limits forces that are not measured.
            UnknownNameError: if there is no camera of a name.
            ArmStoppedError: if the arm cannot be reached, or is not ready to be driven.
        """
        cameras, size = _frames(wanted)
        with open_arm(self._first, cameras, size) as io:
            for file in self._files.values():
                check_forces(file, io)
            self._io = io
            try:
                yield
            finally:
                self._io = None

    def __call__(self, task: str, options: WorkcellOptions) -> Workcell:
        """Return the workcell of a task; closing it leaves the arm open.

        Raises:
            UnknownNameError: if the task is none of them.
            StepOrderError: outside of `opened`.
        """
        del options  # they are among those that were wanted
        if task not in self._files:
            raise UnknownNameError("task", task, self._files)
        if self._io is None:
            raise StepOrderError("the arm is not open")
        file = self._files[task]
        return workcell_on(self._io, file, close=lambda: None, obstacle=self._obstacle(file.task, self._io))

    def _obstacle(self, spec: TaskSpec, io: ArmRobotIO) -> Callable[[], str | None]:
        """Return what finds why a task cannot begin where the arm is: one with a start pose always can."""
        before = self._first.task
        if spec.start is not None or before.start is None:
            return lambda: None
        ends = TcpRegion.of(before, before.start)

        def obstacle() -> str | None:
            try:
                beyond = ends.beyond(io.read().T_base_tcp.position)
            except StaleStateError:
                return None  # the start of the episode tries again, and names what is wrong
            if beyond <= MARGIN:
                return None
            return f"the arm is {beyond * 1e3:.0f} mm outside of the workspace of {before.name}, where it has to begin"

        return obstacle


def _frames(wanted: Mapping[str, WorkcellOptions]) -> tuple[Sequence[str], int]:
    """Return the cameras of all tasks, and the height and width of their frames [px]."""
    seeing = {task: options for task, options in wanted.items() if options.cameras}
    if len(sizes := {options.image_size for options in seeing.values()}) > 1:
        sizes_text = " and ".join(f"{task} {options.image_size[0]}" for task, options in seeing.items())
        raise ConfigError(
            f"the tasks share one set of cameras, and want frames of different sizes: {sizes_text} px; set "
            "encoder.image_size alike, and train classifiers on frames of that size"
        )
    cameras = dict.fromkeys(camera for options in seeing.values() for camera in options.cameras)
    return tuple(cameras), next(iter(sizes))[0] if sizes else WorkcellOptions().image_size[0]
