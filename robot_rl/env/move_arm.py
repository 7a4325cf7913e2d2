"""Travel of the arm to a pose, slowly and in a straight line, until it rests there; e.g. to the start of an episode.

It needs the robot and its clock only. `CommandGuard` applies the limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_rl.clock import NS_PER_S, Clock, Rate
from robot_rl.env.robot_io import Command, RobotIO
from robot_rl.env.task import StartPose
from robot_rl.errors import RobotLostError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat

PERIOD = 0.1
"""Time between two commands [s]."""
_TTL = 0.25
"""Lifetime of a command [s]; if no more come, the arm holds."""
_REST_SAMPLES = 6
"""Measurements in a row, one a period, that have to agree."""
_REST_POSITION, _REST_ROTATION = 4e-4, 2e-3
"""By how much they may differ from their mean: the noise of an arm that stands still [m, rad]."""
NEAR, ALIKE = 0.02, 0.1
"""How far from it a compliant arm may come to rest [m, rad]."""
LAG = 0.3
"""Time by which an arm that moves may be behind its set-point, more than that [s]."""
_PATIENCE = 10.0
"""Longest time until the arm rests [s]."""


@dataclass(frozen=True, eq=False)
class Rest:
    """Where the arm stood still.

    Attributes:
        T_base_tcp: The mean of what was measured.
        since: Stamp of the first measurement [ns].
        until: Stamp of the last [ns].
    """

    T_base_tcp: Pose
    since: int
    until: int


class Travel:
    """Go from pose to pose.

    Args:
        io: The arm.
        clock: Its clock.
        speed: Largest speed of the tcp [m/s].
        turn_rate: Largest rate at which it turns [rad/s].
        check: Called before every command; raises what ends the travel, e.g. that a person took back the consent.
        shown: Whether what shall be seen at rest has been seen between two stamps [ns]; until then the arm waits.
    """

    def __init__(
        self,
        io: RobotIO,
        clock: Clock,
        speed: float,
        turn_rate: float,
        check: Callable[[], None] = lambda: None,
        shown: Callable[[int, int], bool] = lambda since, until: True,
    ) -> None:
        self._io, self._clock, self._check, self._shown = io, clock, check, shown
        self._speed, self._turn_rate = speed, turn_rate

    def go(self, T_base_target: Pose) -> Rest:
        """Go there and wait until the arm rests; return the pose of rest, as a compliant arm stops nearby.

        An arm that does not follow, e.g. because a person holds it, is stopped, and rests where it is. Set-points that
        went on would have it catch up as fast as its limits let it, once it may move again.

        Raises:
            RobotLostError: if it does not come to rest, or is not heard; it has been stopped.
        """
        start = self._io.read().T_base_tcp
        way = T_base_target.position - start.position
        turn = rotvec_from_quat(quat_multiply(quat_conjugate(start.quaternion), T_base_target.quaternion))
        # Starting and stopping gently, the arm is at its fastest in the middle, pi / 2 times the mean.
        seconds = 0.5 * np.pi * max(np.linalg.norm(way) / self._speed, np.linalg.norm(turn) / self._turn_rate)
        steps = max(1, int(np.ceil(seconds / PERIOD)))
        rate = Rate(self._clock, PERIOD)
        try:
            for i in range(1, steps + 1):
                share = 0.5 - 0.5 * np.cos(np.pi * i / steps)
                towards = start @ Pose.from_rotvec(np.zeros(3), share * turn)
                set_point = Pose(start.position + share * way, towards.quaternion)
                self._send(set_point)
                rate.sleep()
                if self._is_behind(set_point):
                    self._io.stop()
                    return self._rest(rate, lambda: None)
            return self._rest(rate, lambda: None if self._is_behind(T_base_target) else self._send(T_base_target))
        except BaseException:  # Ctrl-C too: whatever it is, the arm does not go on
            self._io.stop()
            raise

    def rest(self) -> Rest:
        """Wait until the arm, which somebody else moves, rests.

        Raises:
            RobotLostError: if it does not for 10 s, or is not heard.
        """
        return self._rest(Rate(self._clock, PERIOD), lambda: None)

    def _is_behind(self, set_point: Pose) -> bool:
        """Return whether the arm is further from its set-point than one that follows."""
        off = (set_point.inverse() @ self._io.read().T_base_tcp).vector()
        return bool(
            np.linalg.norm(off[:3]) > NEAR + LAG * self._speed
            or np.linalg.norm(off[3:]) > ALIKE + LAG * self._turn_rate
        )

    def _send(self, T_base_target: Pose) -> None:
        self._check()
        self._io.command(Command(self._clock.now(), _TTL, T_base_target))

    def _rest(self, rate: Rate, keep: Callable[[], None]) -> Rest:
        """Call `keep` in every period until the newest measurements agree."""
        poses, stamps = deque[Pose](maxlen=_REST_SAMPLES), deque[int](maxlen=_REST_SAMPLES)
        at_rest = False
        deadline = self._clock.now() + round(_PATIENCE * NS_PER_S)
        while self._clock.now() < deadline:
            keep()
            rate.sleep()
            state = self._io.read()
            if stamps and state.stamp <= stamps[-1]:
                continue
            poses.append(state.T_base_tcp)
            stamps.append(state.stamp)
            if len(poses) == _REST_SAMPLES:
                mean, spread = _mean(list(poses))
                at_rest = spread[0] <= _REST_POSITION and spread[1] <= _REST_ROTATION
                if at_rest and self._shown(stamps[0], stamps[-1]):
                    return Rest(mean, stamps[0], stamps[-1])
        if at_rest:
            raise RobotLostError(
                f"what shall be seen at rest has not been seen within {_PATIENCE:g} s; is the camera on?"
            )
        raise RobotLostError(
            f"the arm has not come to rest within {_PATIENCE:g} s; is it held, or pushed against something?"
        )


def _mean(poses: list[Pose]) -> tuple[Pose, tuple[float, float]]:
    """Return the mean of poses that are close together, and the largest distances from it [m, rad]."""
    first = poses[0]
    changes = np.array([(first.inverse() @ pose).vector() for pose in poses])
    mean = changes.mean(axis=0)
    apart = np.linalg.norm((changes - mean).reshape(-1, 2, 3), axis=2).max(axis=0)
    return first @ Pose.from_rotvec(mean[:3], mean[3:]), (float(apart[0]), float(apart[1]))


def move_gripper(io: RobotIO, clock: Clock, width: float) -> None:
    """Move the fingers where the arm is, and give them a second for it.

    Args:
        io: The arm.
        clock: Its clock.
        width: Distance between the fingers that they shall take [m].
    """
    rate, here = Rate(clock, PERIOD), io.read().T_base_tcp
    for _ in range(round(1.0 / PERIOD)):
        io.command(Command(clock.now(), _TTL, here, width))
        rate.sleep()


def go_to_start(io: RobotIO, clock: Clock, start: StartPose) -> None:
    """Go back along the tool, then straight to the start pose, and waits until the arm rests.

    Raises:
        RobotLostError: if the arm does not get there, or is not heard; it has been stopped.
    """
    travel = Travel(io, clock, start.speed, start.turn_rate)
    if start.retreat:
        travel.go(io.read().T_base_tcp @ Pose(np.array([0.0, 0.0, -start.retreat]), Pose.identity().quaternion))
    off = (start.pose.inverse() @ travel.go(start.pose).T_base_tcp).vector()
    away, turned = float(np.linalg.norm(off[:3])), float(np.linalg.norm(off[3:]))
    if away > NEAR or turned > ALIKE:
        io.stop()
        raise RobotLostError(
            f"the arm has come to rest {away * 1e3:.0f} mm and {np.degrees(turned):.0f} deg from its start pose; is "
            "something in its way, or the pose outside the limits of the safety node?"
        )
