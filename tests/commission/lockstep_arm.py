"""An arm in memory whose time passes only while somebody sleeps on its clock; it can be defective in known ways."""

import numpy as np

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.env.robot_io import Command, RobotState, check_command
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate

STEP = NS_PER_S // 200


class LockstepArm:
    """A `RobotIO` that follows set-points like a first-order system.

    Args:
        tau: Time constant [s].
        dead_time: Until a command has an effect [s].
        sag: Speed at which it sinks while it holds where it is measured [m/s].
        inverted: Axes along which it goes the wrong way.
        exchanged: Whether it takes x for y.
        holds: Whether it holds when a command expires and at a stop; else it goes on like its set-points.
        box: Limits that clip set-points; None has none.
        force_sign: Of its wrench.
        press_at: When somebody presses the tool down with 10 N, for a second [s]; None never.
        gripper_speed: [m/s].
        noise: Standard deviation of measured positions [m].
        settles: How often it sags by 0.4 mm at first, every 1.2 s, as servos do by steps of their encoders.
    """

    def __init__(
        self,
        tau=0.05,
        dead_time=0.0,
        sag=0.0,
        inverted="",
        exchanged=False,
        holds=True,
        box=((0.3, -0.3, 0.0), (0.7, 0.3, 0.5)),
        force_sign=1.0,
        press_at=None,
        gripper_speed=0.1,
        noise=0.0,
        settles=0,
    ):
        self.clock = LockstepClock(self)
        self.tau, self.dead_time, self.sag, self.holds = tau, dead_time, sag, holds
        self.signs = np.array([-1.0 if axis in inverted else 1.0 for axis in "xyz"])
        self.exchanged, self.box, self.force_sign, self.press_at = exchanged, box, force_sign, press_at
        self.gripper_speed, self.noise, self.settles, self.sags = gripper_speed, noise, settles, 0
        self.start = np.array([0.5, 0.0, 0.25])
        self.quaternion = np.array([0.0, 1.0, 0.0, 0.0])  # the tool points down
        self.position, self.velocity = self.start.copy(), np.zeros(3)
        self.width, self.wanted_width = 0.08, 0.08
        self.queue, self.goal, self.expires, self.goal_velocity = [], None, 0, np.zeros(3)
        self.stops = self.commands = 0
        self.random = np.random.default_rng(0)

    # As a `RobotIO`.

    def read(self):
        measured = self.position + self.noise * self.random.standard_normal(3)
        force = np.zeros(3)
        if self.press_at is not None and 0 <= self.clock.now() / NS_PER_S - self.press_at < 1.0:
            force = self.force_sign * np.array([0.5, 0.0, -10.0])
        wrench = np.concatenate((quat_rotate(quat_conjugate(self.quaternion), force), np.zeros(3)))
        pose = Pose(measured, self.quaternion)
        return RobotState(
            self.clock.now(),
            pose,
            np.concatenate((self.velocity, np.zeros(3))),
            wrench,
            np.zeros(7),
            np.zeros(7),
            self.width,
        )

    def command(self, command: Command):
        expires = check_command(command, self.clock.now())
        self.commands += 1
        delay = round(self.dead_time * NS_PER_S)
        self.queue.append((self.clock.now() + delay, command, expires + delay))

    def stop(self):
        self.stops += 1
        self.queue.clear()
        if self.holds:
            self.goal = None

    # Its physics.

    def step(self, seconds):
        while self.queue and self.queue[0][0] <= self.clock.now():
            _, command, self.expires = self.queue.pop(0)
            before = self.goal
            offset = self.signs * (command.T_base_target.position - self.start)
            self.goal = self.start + (offset[[1, 0, 2]] if self.exchanged else offset)
            if self.box is not None:
                self.goal = np.clip(self.goal, *self.box)
            self.goal_velocity = np.zeros(3) if before is None else (self.goal - before) / 0.1
            if command.gripper_width is not None:
                self.wanted_width = min(command.gripper_width, 0.08)
        if self.goal is not None and self.clock.now() >= self.expires:
            if self.holds:
                self.goal = None
            else:
                self.goal = self.goal + self.goal_velocity * seconds
        if self.goal is None:
            self.velocity = np.zeros(3)
        else:
            self.velocity = (self.goal - self.position) / self.tau - np.array([0.0, 0.0, self.sag])
            speed = np.linalg.norm(self.velocity)
            self.velocity = self.velocity * min(1.0, 0.3 / max(speed, 1e-9))
        self.position = self.position + self.velocity * seconds
        if self.sags < self.settles and self.clock.now() >= 1.2 * NS_PER_S * (self.sags + 1):
            self.sags += 1
            self.position[2] -= 4e-4
            self.goal = self.goal if self.goal is None else self.goal - np.array([0.0, 0.0, 4e-4])
        most = self.gripper_speed * seconds
        self.width += float(np.clip(self.wanted_width - self.width, -most, most))


class LockstepClock(FakeClock):
    """Its sleepers let the arm move."""

    def __init__(self, arm):
        super().__init__()
        self._arm = arm

    def sleep_until(self, stamp):
        while self.now() < stamp:
            before = self.now()
            super().sleep_until(min(stamp, before + STEP))
            self._arm.step((self.now() - before) / NS_PER_S)
