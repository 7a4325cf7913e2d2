"""Several arms, each a robot of its own, as one: one state, one command, one decision whether they move.

If one of them must hold, all hold: one whose state is stale, that refuses a command, cannot be reached, or holds until
a person lets it go on, stops all.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from robot_rl.clock import Clock
from robot_rl.env.robot_io import Command, RobotIO, RobotState, check_command
from robot_rl.env.state_assembler import skew_of_arms
from robot_rl.errors import ArmStoppedError


class JoinedRobotIO:
    """A `RobotIO` over those of several arms; an `ArmStops` as well, over those of them that are.

    Frames of the camera `wrist` of the arm `left` are those of `left_wrist`.

    Args:
        arms: Each arm, by name.
        clock: The clock of all of them.
        max_skew: Largest difference between the stamps of two arms' states [s].

    Attributes:
        skew: The largest difference that was measured [s].
    """

    def __init__(self, arms: Mapping[str, RobotIO], clock: Clock, max_skew: float = 0.05) -> None:
        self._arms, self._clock, self._max_skew = dict(arms), clock, max_skew
        self._lock = threading.Lock()  # so that no stop comes between the set-points of a command
        self.skew = 0.0

    def read(self) -> RobotState:
        """Return the newest states of all arms.

        Raises:
            StaleStateError: if one is too old, or too far from another in time; all arms have been stopped.
        """
        try:
            states = {name: io.read() for name, io in self._arms.items()}
            skew = skew_of_arms(states, self._max_skew)
        except BaseException:
            self.stop()
            raise
        self.skew = max(self.skew, skew)
        frames = {f"{name}_{camera}": frame for name, state in states.items() for camera, frame in state.images.items()}
        return RobotState.of_arms(states, frames)

    def command(self, command: Command) -> None:
        """Send each arm its set-point; while one of them is stopped, hold all.

        Raises:
            ActionError: as `check_command`, before any arm is sent something.
            RobotRLError: what an arm raises that refuses its set-point; all arms have been stopped.
        """
        check_command(command, self._clock.now(), self._arms)
        try:
            with self._lock:
                for name in command.arms if self.stopped is None else ():
                    self._arms[name].command(command.of_arm(name))
        except BaseException:
            self.stop()
            raise
        if self.stopped is not None:  # also since then: an arm that has stopped drops its set-point without a word
            self.stop()

    def stop(self) -> None:
        """Hold all arms; one that cannot be reached does not keep the others from it."""
        with self._lock:
            self._stop(list(self._arms.values()))

    @property
    def stopped(self) -> str | None:
        """Why arms hold until a person lets them go on, each with its name; None if all may move."""
        reasons = ((name, getattr(io, "stopped", None)) for name, io in self._arms.items())
        return "; ".join(f"arm {name}: {reason}" for name, reason in reasons if reason is not None) or None

    def recover(self) -> None:
        """End the stops of all arms, after a person has consented; they hold where they are until the next command.

        Raises:
            ArmStoppedError: if that of one cannot be ended; those of the others have been.
        """
        left = []
        for name, io in self._arms.items():
            if getattr(io, "stopped", None) is not None:
                try:
                    io.recover()  # type: ignore[attr-defined]
                except ArmStoppedError as error:
                    left.append(f"arm {name}: {error}")
        if left:
            raise ArmStoppedError("; ".join(left))

    def _stop(self, arms: list[RobotIO]) -> None:
        try:
            arms[0].stop()
        finally:
            if len(arms) > 1:
                self._stop(arms[1:])
