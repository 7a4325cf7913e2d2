"""The workcell of a robot file: an arm, its cameras and a task in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from robot_rl.arm.arm_control import NO_WRENCH
from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.control_thread import acting, own_priority
from robot_rl.camera.crop import Crop, make_crop
from robot_rl.camera.feed import CameraFeed, FeedLimits
from robot_rl.camera.open_source import opener
from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.cell.arm_stop_judge import ArmStopJudge
from robot_rl.cell.goal import Goal
from robot_rl.cell.robot_file import CameraConfig, RobotFile
from robot_rl.cell.robot_tasks import GoalOperator, GoalTask, PersonTask
from robot_rl.data.schema import Source
from robot_rl.env.state_assembler import Freshness
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class RobotWorkcell:
    """Opens the workcell of a robot file.

    Attributes:
        file: The file.
    """

    file: RobotFile

    def __call__(self, task: str, options: WorkcellOptions) -> Workcell:
        """Open the arm and the cameras, and return the workcell.

        Until it is closed, the calling thread, which is the one that acts, has real-time priority; see `acting`.

        Raises:
            ConfigError: if a setting is not valid, or the task limits forces that the arm does not measure.
            UnknownNameError: if the cell has no camera of a name.
            ArmStoppedError: if the arm cannot be reached, or is not ready to be driven.
        """
        file = self.file
        if task != file.task.name:
            raise ConfigError(f"{file.path} was read for the task {file.task.name}, not for {task}")
        with contextlib.ExitStack() as stack:
            io = stack.enter_context(open_arm(file, options.cameras, options.image_size[0]))
            check_forces(file, io)
            return workcell_on(io, file, close=stack.pop_all().close)


@contextlib.contextmanager
def open_arm(file: RobotFile, cameras: Sequence[str], size: int) -> Iterator[ArmRobotIO]:
    """Open the arm of a robot file and cameras of it, whose frames have this height and width [px].

    Raises:
        ConfigError, UnknownNameError, ArmStoppedError: as for `RobotWorkcell`.
    """
    for name in cameras:
        if name not in file.cameras:
            raise UnknownNameError("camera", name, file.cameras, "encoder.cameras")
    with contextlib.ExitStack() as stack:
        stack.enter_context(own_priority())
        io = ArmRobotIO(
            file.connection.make_driver,
            file.connection.limits,
            file.connection.cap,
            cameras=tuple(cameras),
            freshness=Freshness(max_age=file.cell.max_age, max_camera_age=file.cell.max_camera_age),
            wrench_cutoff=file.cell.wrench_cutoff,
            interpolation=file.connection.interpolation,
        )
        stack.callback(io.close)
        stack.enter_context(acting())
        for name in cameras:
            feed = _feed(name, file.cameras[name], size, io)
            feed.start()
            stack.callback(feed.close)
        yield io


def workcell_on(
    io: ArmRobotIO,
    file: RobotFile,
    *,
    close: Callable[[], None],
    obstacle: Callable[[], str | None] = lambda: None,
) -> Workcell:
    """Return the workcell of the task of a robot file on an open arm.

    Args:
        io: The arm.
        file: The file.
        close: Releases what the workcell owns.
        obstacle: Why the task cannot begin where the arm is; None if it can.
    """
    task_: PersonTask = PersonTask(file.task, io.tare, obstacle)
    operator = None
    if file.cell.judge == "goal":
        goal = Goal(file.goal)
        task_ = GoalTask(file.task, io.tare, io, goal, obstacle)
        operator = GoalOperator(file.task, goal)
    return Workcell(
        io=io,
        clock=io.wall,
        task=task_,
        operator=operator,
        operator_source=Source.HUMAN if operator is None else Source.SCRIPT,
        close=close,
        judges=(ArmStopJudge(io),),
        await_frames=io.await_frames,
        measures_wrench=io.measures_wrench,
        stops=io,
        links=io.links,
        person_resets=file.cell.scene == "person",
        person_judges=file.cell.judge == "person",
    )


def check_forces(file: RobotFile, io: ArmRobotIO) -> None:
    """Check that the forces that the task limits are measured, unless the file accepts that they are not.

    Raises:
        ConfigError: if they are not.
    """
    if io.measures_wrench:
        return
    if file.cell.forces == "required":
        raise ConfigError(
            f"{file.path}: the task {file.task.name} ends at a force of {file.task.force_limit:g} N, but the "
            f"driver {file.connection.driver} measures no force; accept that with `forces: unmeasured` in cell, or "
            "use an arm or a sensor that measures it"
        )
    io.problem(f"{NO_WRENCH} (accepted by `forces: unmeasured`)")


def _feed(name: str, config: CameraConfig, size: int, io: ArmRobotIO) -> CameraFeed:
    wanted = CaptureFormat(config.width, config.height, config.rate)
    limits = FeedLimits(config.rate, config.frozen_after)
    return CameraFeed(name, opener(config.source, wanted), _viewer(name, config, size, io), io.problem, limits, io.wall)


def _viewer(name: str, config: CameraConfig, size: int, io: ArmRobotIO) -> Callable[[Frame], None]:
    """Return what hands on the visible part of each frame."""
    left_top_width_height = tuple(config.crop)
    views: dict[tuple[int, int], Crop] = {}

    def take(frame: Frame) -> None:
        captured = (frame.image.shape[1], frame.image.shape[0])
        if captured not in views:
            views[captured] = make_crop(captured, size, left_top_width_height or None)  # type: ignore[arg-type]
        io.take_frame(name, frame.stamp, views[captured].apply(frame.image))

    return take
