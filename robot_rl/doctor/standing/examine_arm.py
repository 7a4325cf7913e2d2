"""All checks of an arm that stands, and of its cameras, both at the same time as in a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from robot_rl.arm.driver import ArmDriver, DriverHost
from robot_rl.camera.source import FrameSource
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.doctor.standing.box_in_reach import Box, StandingTool, judge_box
from robot_rl.doctor.standing.cameras import watch_cameras
from robot_rl.doctor.standing.measurements import judge_measurements
from robot_rl.doctor.standing.observation import ArmObservation, observe
from robot_rl.errors import RobotRLError


@dataclass(frozen=True, eq=False)
class StandingRobot:
    """A robot that is examined while it stands.

    Attributes:
        make_driver: Makes its driver.
        max_age: Oldest pose with which it may move [s].
        box: Of its limits.
        cameras: By name, what opens each camera.
        rates: Their wanted frames per second.
    """

    make_driver: Callable[[DriverHost], ArmDriver]
    max_age: float
    box: Box
    cameras: Mapping[str, Callable[[], FrameSource]] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)


def examine_arm(robot: StandingRobot, seconds: float) -> Iterator[CheckResult]:
    """Observe driver and cameras for some seconds, and judge both; nothing is commanded."""
    with ThreadPoolExecutor(1) as beside:
        watched = beside.submit(lambda: list(watch_cameras(robot.cameras, robot.rates, seconds)))
        try:
            seen = observe(robot.make_driver, seconds, robot.max_age)
            yield from judge_measurements(seen)
            if (tool := _tool(seen)) is not None:
                yield judge_box(tool, robot.box)
        except RobotRLError as error:
            yield CheckResult("arm", "fault", str(error), cure="cure what it names, then examine again")
        yield from watched.result()


def _tool(seen: ArmObservation) -> StandingTool | None:
    """Return where the arm stood at the end; None where that, or its kinematics, is not known."""
    joints, poses = seen.samples.get("joints"), seen.samples.get("pose")
    if seen.chain is None or not joints or not poses or joints[-1][2].position.size != seen.chain.size:
        return None
    return StandingTool(seen.chain, joints[-1][2].position, poses[-1][2])
