"""The arm that is commissioned: its robot, its limits, and how slowly it is moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_rl.arm.set_point.set_point_path import Interpolation
from robot_rl.clock import NS_PER_S, Clock
from robot_rl.commission.motion.trace import Trace, TraceRecorder
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.robot_io import Command, RobotIO, RobotState
from robot_rl.geometry import Pose

PERIOD, TTL = 0.1, 0.25
"""Between two commands, and lifetime of a command [s]."""
AT_REST, PATIENCE = 5e-4, 10.0
"""Motion within half a second below which the arm stands for most trials [m], and longest wait for that [s]."""
SPEED_SHARE = 0.1
"""Of the largest speed that the limits allow."""

SetPoint = Callable[[RobotState, float], Pose]
"""From the newest state and the time since the begin [s] to the next set-point."""


@dataclass(frozen=True, eq=False)
class ArmUnderTrial:
    """An arm, and how it is moved.

    Attributes:
        io: The robot.
        clock: Its clock.
        limits: Of commands.
        measures_wrench: Whether it measures forces.
        has_gripper: Whether it has one, and measures its width.
        sample: Time between two samples [s].
        check: Called before every command; raises what ends a trial, e.g. that a person took back the consent.
        interpolation: How its set-points get from one command to the next.
        interpolate: Has it done in another way from now on.
    """

    io: RobotIO
    clock: Clock
    limits: CommandLimits
    measures_wrench: bool = True
    has_gripper: bool = False
    sample: float = 0.02
    check: Callable[[], None] = lambda: None
    interpolation: Interpolation = "none"
    interpolate: Callable[[Interpolation], None] = lambda kind: None

    @property
    def speed(self) -> float:
        """How fast trials move the tcp [m/s]."""
        return SPEED_SHARE * self.limits.max_speed

    def play(
        self,
        set_point: SetPoint,
        seconds: float,
        *,
        record: TraceRecorder | None = None,
        stop_when: Callable[[RobotState], bool] = lambda state: False,
        width: float | None = None,
    ) -> Trace:
        """Command set-points for a time, and return what was measured meanwhile.

        Args:
            set_point: Where to, in each period.
            seconds: How long [s].
            record: Is continued; None begins a new one.
            stop_when: Whether to stop the arm and return at once.
            width: Of the gripper [m]; None leaves it.

        Raises:
            RobotLostError: if the arm is not heard; it has been stopped, as after any error.
        """
        recorder = record or TraceRecorder(self.clock.now())
        begin = self.clock.now()
        try:
            for number in range(round(seconds / PERIOD)):
                self.check()
                state = self.io.read()
                at = number * PERIOD
                target = set_point(state, at)
                self.io.command(Command(self.clock.now(), TTL, target, width))
                recorder.target = target
                if self._sample(recorder, begin + round((number + 1) * PERIOD * NS_PER_S), stop_when):
                    self.io.stop()
                    break
        except BaseException:  # Ctrl-C too: whatever it is, the arm does not go on
            self.io.stop()
            raise
        return recorder.trace()

    def come_to_rest(self, motion: float = AT_REST, seconds: float = 0.5) -> None:
        """Wait, without a command, until the arm stands; it may sag when its motors come on. At most `PATIENCE`.

        Args:
            motion: It stands if it moves by less [m].
            seconds: Within this time [s].
        """
        end = self.clock.now() + round(PATIENCE * NS_PER_S)
        while self.clock.now() < end:
            positions = self.watch(TraceRecorder(self.clock.now()), seconds).position
            if np.linalg.norm(positions.max(axis=0) - positions.min(axis=0)) < motion:
                return

    def watch(self, recorder: TraceRecorder, seconds: float) -> Trace:
        """Record for a time without a command."""
        self._sample(recorder, self.clock.now() + round(seconds * NS_PER_S), lambda state: False)
        return recorder.trace()

    def _sample(self, recorder: TraceRecorder, end: int, stop_when: Callable[[RobotState], bool]) -> bool:
        """Record until `end` [ns]; return whether to stop before."""
        while self.clock.now() < end:
            self.clock.sleep_until(min(end, self.clock.now() + round(self.sample * NS_PER_S)))
            state = self.io.read()
            recorder.add(state)
            if stop_when(state):
                return True
        return False


def along_line(start: Pose, offset: np.ndarray, speed: float) -> SetPoint:
    """Return set-points on the straight line from `start` to `offset` [m] from it, at a speed [m/s]; then the end."""
    length = float(np.linalg.norm(offset))

    def set_point(state: RobotState, at: float) -> Pose:
        del state
        share = min(1.0, at * speed / length) if length else 1.0
        return Pose(start.position + share * offset, start.quaternion)

    return set_point
