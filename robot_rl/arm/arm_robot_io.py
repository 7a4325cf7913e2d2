"""An arm in this process as a `RobotIO`: a driver behind limits and cap, joined with cameras, without ROS.

It is what `safety_node` and `robot_node` are over topics, of the same parts: `CommandGuard`, `SetPointCap`,
`CommandFollower` and `StateAssembler`. One process drives one arm, since the destructors of some vendors' libraries
hold Python's lock for seconds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robot_rl.arm.arm_control import ArmControl
from robot_rl.arm.control_thread import ControlThread, starting_beside
from robot_rl.arm.driver import ArmDriver, DriverHost, links_of
from robot_rl.arm.set_point.set_point_cap import SetPointCap
from robot_rl.arm.set_point.set_point_path import InterpolationChoice
from robot_rl.clock import WallClock
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command, RobotState, check_command, not_before
from robot_rl.env.state_assembler import ARM_PARTS, FORCELESS_PARTS, TOOL, Freshness, StateAssembler, camera_part
from robot_rl.errors import ArmStoppedError, CommandRefusedError, ConfigError, StaleStateError

logger = logging.getLogger(__name__)

CHECK_RATE = 100.0
"""How often it checks for what has expired, and for faults [Hz]."""
RECOVERY_TIME = 10.0
"""Longest time from a person's consent until the arm obeys [s]."""
FIRST_STATE = 10.0
"""Longest time from the start of a driver to its first state [s]."""
_POLL = 0.005
"""Time between two looks for something that is waited for [s]."""


class ArmRobotIO:
    """A robot in this process; an `ArmStops` as well.

    A fault of the arm, or a limit that latches, stops it: commands are not followed until a person has consented to
    `recover`. `stopped` is the reason.

    Args:
        make_driver: Makes the driver for its host, which is this object.
        limits: Of commands.
        cap: The last cap on set-points; the limits have to be within it.
        cameras: Cameras whose frames belong to the state; `take_frame` receives them.
        freshness: What counts as fresh.
        wrench_cutoff: Corner frequency of the low-pass of the wrench [Hz]; 0: none.
        interpolation: How set-points get from one command to the next.
        report: Given each new text about what is wrong; None logs it.

    Raises:
        ConfigError: if the limits are wider than the cap, or a setting of the driver is not valid.
        ArmStoppedError: if the arm cannot be reached, is not ready to be driven, or nothing is measured.
    """

    def __init__(
        self,
        make_driver: Callable[[DriverHost], ArmDriver],
        limits: CommandLimits,
        cap: ArmCap,
        *,
        cameras: Sequence[str] = (),
        freshness: Freshness | None = None,
        wrench_cutoff: float = 10.0,
        interpolation: InterpolationChoice = "driver",
        report: Callable[[str], None] | None = None,
    ) -> None:
        freshness = freshness or Freshness()
        self.wall = WallClock()
        self.max_age = freshness.max_age
        self._report = report or logger.warning
        self.problems: Counter[str] = Counter()
        """How often each thing went wrong."""
        set_point_cap = SetPointCap(cap)
        if wider := set_point_cap.exceeded_by(limits):
            raise ConfigError(f"the limits are wider than the arm's own cap: {'; '.join(wider)}; change one of each")
        with starting_beside():  # the vendor's threads: a measurement that waits for a processor is an old one
            self._driver = make_driver(self)
        self.measures_wrench = "wrench" in self._driver.measures
        self.links = links_of(self._driver)
        measured = ARM_PARTS if self.measures_wrench else FORCELESS_PARTS
        self.parts = StateAssembler(cameras, freshness, measured=measured)
        self._cameras = tuple(camera_part(name) for name in cameras)
        self._guard = CommandGuard(limits, measures_wrench=self.measures_wrench)
        self._order = threading.RLock()  # so that no command overtakes a stop
        self._last_stamp = -1  # of the newest command or stop [ns]
        self._guarded = threading.Lock()  # never held while the driver is called, whose thread takes it
        self._latching = threading.Lock()
        self._stopped: str | None = None
        self._control = ArmControl(
            self._driver, self, self.parts, set_point_cap, wrench_cutoff=wrench_cutoff, interpolation=interpolation
        )
        self._watch = ControlThread("arm watch", CHECK_RATE, self._check)
        try:
            self._control.start(self._take)
            self._watch.start()
            self._await_state()
        except BaseException:  # Ctrl-C too: the arm is let go
            self.close()
            raise

    # As a `RobotIO`.

    def read(self) -> RobotState:
        """Return the newest state; its `peak_force` is of all samples since the previous `read`."""
        return self.parts.read(self.wall.now())

    def command(self, command: Command) -> None:
        """Follow a command, within all limits, until it expires; while the arm is stopped, hold.

        Raises:
            ActionError: as `check_command`.
            StaleStateError: if the arm is not measured; then it holds.
            CommandRefusedError: if the command comes out of order or from the future.
        """
        now = self.wall.now()
        check_command(command, now)
        if (age := self._control.age()) > self.max_age:
            self._control.stop("it is not measured")
            raise StaleStateError(age, self.max_age, what="pose of the arm")
        if self.stopped is not None:
            return
        with self._order:
            command = not_before(command, self._last_stamp)
            self._last_stamp = command.stamp
            try:
                with self._guarded:
                    guarded = self._guard.check(command, now)
                self._control.command(guarded.command)
            except CommandRefusedError as error:
                self._control.stop(str(error))
                self._latch_faults()
                if self.stopped is not None:  # it stopped meanwhile: whoever commands reads why there
                    return
                raise

    def stop(self) -> None:
        """Hold the arm where it is until the next command."""
        with self._order:
            self._last_stamp = max(self._last_stamp, self.wall.now())
            with self._guarded:
                self._guard.stop(self._last_stamp)
            self._control.stop("a stop was requested")

    # As an `ArmStops`.

    @property
    def stopped(self) -> str | None:
        """Why the arm holds until a person lets it go on; None if it may move."""
        return self._stopped or self._guard.tripped

    def recover(self) -> None:
        """End the stop, after a person has consented; the arm holds where it is until the next command.

        Raises:
            ArmStoppedError: if a fault stays for 10 s, or a limit has latched meanwhile, which the person has not seen.
        """
        with self._guarded:
            self._guard.release()
        self._control.recover()
        end = time.monotonic() + RECOVERY_TIME
        while not self._let_go():
            if time.monotonic() > end:
                raise ArmStoppedError("; ".join(self._control.faults()))
            time.sleep(_POLL)
        if (tripped := self._guard.tripped) is not None:
            raise ArmStoppedError(tripped)

    # For the program that has it.

    def tare(self) -> bool:
        """Make the present wrench zero; return whether one is measured. The tool must touch nothing."""
        return self._control.tare()

    def interpolate(self, choice: InterpolationChoice) -> None:
        """Hold, and have set-points get from one command to the next in another way."""
        self._control.interpolate(choice)

    def take_frame(self, camera: str, stamp: int, image: np.ndarray) -> None:
        """Receive a frame, uint8 of shape (height, width, 3), captured at the stamp [ns]."""
        self.parts.add(camera_part(camera), stamp, image, self.wall.now())

    def await_frames(self, longest: float = 0.5) -> None:
        """Wait for the next frame of each camera, for at most so long [s]; `read` reports what is missing."""
        before = {part: self.parts.stamp(part) for part in self._cameras}
        end = time.monotonic() + longest
        while any(self.parts.stamp(part) <= stamp for part, stamp in before.items()) and time.monotonic() < end:
            time.sleep(_POLL)

    def problem(self, text: str) -> None:
        """Count what is wrong, and report it when it is new."""
        self.problems[text] += 1
        if self.problems[text] == 1:
            self._report(text)

    def close(self) -> None:
        """Hold, and release the arm; doing it twice is fine."""
        self._watch.close()
        self._control.close()

    def _check(self) -> None:
        """Hold for whatever ends a command, and latch the stop at a fault, or where the driver fails."""
        try:
            self._control.check()
            self._latch_faults()
            if self._guard.tripped is not None:
                self._control.stop(self._guard.tripped)
        except Exception as error:  # noqa: BLE001  (of a vendor's library; without this thread nothing would expire)
            with self._latching:
                self._latch(f"the arm's driver has failed ({type(error).__name__}: {error}); look at it, then consent")

    def _let_go(self) -> bool:
        """End the stop, unless there is a fault; return whether it has ended."""
        with self._latching:
            if self._control.faults():
                return False
            self._stopped = None
            return True

    def _latch_faults(self) -> None:
        with self._latching:  # so that no fault of before a recovery latches after it
            if faults := self._control.faults():
                self._latch("; ".join(faults))

    def _latch(self, reason: str) -> None:
        """Keep a reason; a later one replaces it, since a driver first feels a stop and then learns its cause."""
        if reason != self._stopped and self.parts.received["pose"]:  # before the first, it is only starting
            self._stopped = reason
            self.problem(f"the arm holds: {reason}")

    def _take(self, part: str, stamp: int, value: Any) -> None:
        """Hold the limits to what is measured."""
        with self._guarded:
            if part == "pose":
                self._guard.measured_pose(value, stamp)
                self.parts.add(TOOL, stamp, self._control.take_tool(), self.wall.now())
            elif part == "wrench":
                self._guard.measured_wrench(value, stamp)

    def _await_state(self) -> None:
        """Wait until everything is measured.

        Raises:
            ArmStoppedError: if something is not, or the arm has a fault from the start.
        """
        wanted = ARM_PARTS if self.measures_wrench else FORCELESS_PARTS
        end = time.monotonic() + FIRST_STATE
        while missing := [part for part in wanted if self.parts.stamp(part) < 0]:
            faults = self._control.faults()
            if time.monotonic() > end or (faults and time.monotonic() > end - FIRST_STATE + 1.0):
                what = f"nothing is measured of the arm's {', '.join(missing)}"
                raise ArmStoppedError("; ".join(faults) or f"{what}; is the arm switched on?")
            time.sleep(_POLL)
