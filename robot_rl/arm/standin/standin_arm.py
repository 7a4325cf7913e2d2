"""An arm in memory behind `ArmDriver`: lag, noise, a table with contact forces, a reflex, and faults on request.

A lab rehearses everything with it before it touches the arm: commissioning, limits, console, recovery, training. It has
no joints worth the name and no shape: only the tool exists. `sim` has an arm with both.
"""

from __future__ import annotations

import threading
from dataclasses import field
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.control_thread import ControlThread
from robot_rl.arm.driver import MEASURABLE, DriverHost, Receive
from robot_rl.arm.standin.compliant_tool import Compliance, CompliantTool
from robot_rl.arm.standin.fault_schedule import DURATION, KINDS, PRESSED, PUSH, SET_BACK, read_schedule
from robot_rl.arm.twist_estimator import TwistFromPoses
from robot_rl.config.field_types import STRICT, NonNegative, NonNegativeReal, PositiveReal, Real
from robot_rl.env.state_assembler import Joints
from robot_rl.errors import ArmStoppedError
from robot_rl.geometry import Pose

TOOL_DOWN = np.array((0.0, 1.0, 0.0, 0.0))
JOINTS = 6
LARGEST_STEP = 0.05
"""Longest time that the arm moves on at once [s]: a process that stood still does not jump."""


@dataclass(frozen=True, config=STRICT)
class StandinConfig:
    """An arm in memory, to rehearse without hardware; faults on request."""

    rate: Annotated[float, Field(gt=0, le=1000)] = 200.0
    """Measurements per second [Hz]."""
    start: tuple[Real, Real, Real] = (0.45, 0.0, 0.2)
    """Where the tool is at the start, in the base frame, pointing down [m]."""
    time_constant: PositiveReal = 0.05
    """Of the way to a set-point, a first-order lag [s]."""
    stiffness: PositiveReal = 2000.0
    """Of its Cartesian controller [N/m]."""
    table: Real = 0.05
    """Height of the table [m]."""
    table_stiffness: PositiveReal = 20000.0
    """Of the table [N/m]."""
    pose_noise: NonNegativeReal = 0.0
    """Standard deviation of each measured coordinate [m]."""
    force_noise: NonNegativeReal = 0.1
    """Standard deviation of each measured force [N]."""
    reflex_force: PositiveReal = 60.0
    """Contact force at which the arm stops itself [N]."""
    gripper: NonNegativeReal = 0.08
    """Largest width of the gripper [m]; 0: it has none."""
    faults: tuple[str, ...] = field(default=())
    """What goes wrong, and when [s after the start]: `reflex@20`, `freeze@40`, `lost@60`, `estop@80`, `wrench@90`,
    `clock@100`, `pushed@110`."""
    seed: NonNegative = 0
    """Of the noise."""


class StandinArm:
    """The arm.

    Args:
        config: Its settings.
        host: The program that runs it.

    Raises:
        ConfigError: if a fault is not one.
    """

    Config = StandinConfig

    def __init__(self, config: StandinConfig, host: DriverHost) -> None:
        self._config, self._host = config, host
        self._planned = list(read_schedule(config.faults))
        compliance = Compliance(config.time_constant, config.stiffness, config.table, config.table_stiffness)
        self._tool = CompliantTool(Pose(np.array(config.start), TOOL_DOWN), compliance)
        self._width = self._wanted_width = config.gripper
        self._rng = np.random.default_rng(config.seed)
        self._twist = TwistFromPoses()
        self._receive: Receive = _discard
        self._lock = threading.Lock()
        self._fault = ""
        self._begun = self._advanced = self._pressed_until = 0  # [ns]
        self._until: dict[str, int] = {}  # when a fault ends that lasts for a while [ns]
        self._thread = ControlThread("stand-in arm", config.rate, self._cycle)

    @property
    def measures(self) -> frozenset[str]:
        """All that can be measured, but for a gripper that it has not."""
        return MEASURABLE if self._config.gripper else MEASURABLE - {"gripper"}

    def start(self, receive: Receive) -> None:
        """Call `receive` with every measurement from now on."""
        self._receive = receive
        self._begun = self._advanced = self._host.wall.now()
        self._thread.start()

    def close(self) -> None:
        """Stop to measure."""
        self._receive = _discard
        self._thread.close()

    def move_to(self, T_base_target: Pose) -> None:
        """Set the set-point; with a fault, do nothing, as an arm does."""
        with self._lock:
            if not self._fault:
                self._tool.set_point = T_base_target

    def move_gripper(self, width: float) -> None:
        """Set the width of the gripper [m]."""
        self._wanted_width = min(max(width, 0.0), self._config.gripper)

    def hold(self) -> None:
        """Stay where it is."""
        with self._lock:
            self._tool.hold()

    def faults(self) -> list[str]:
        """Return why it would not obey now."""
        return [f"{self._fault}; look at the arm, then consent to its recovery"] if self._fault else []

    def recover(self) -> None:
        """End a fault, after a person has consented.

        Raises:
            ArmStoppedError: while its emergency stop is pressed.
        """
        with self._lock:
            if not self._fault:
                return
            if self._host.wall.now() < self._pressed_until:
                raise ArmStoppedError(f"{self._fault}; unlock it first")
            self._tool.hold()
            self._fault = ""

    def _cycle(self) -> None:
        now = self._host.wall.now()
        with self._lock:
            seconds = min(1e-9 * (now - self._advanced), LARGEST_STEP)
            self._advanced = now
            self._tool.advance(seconds)
            if self._lasts("pushed", now):
                self._tool.push(np.array((PUSH * seconds / DURATION, 0.0, 0.0)))
            self._width += (self._wanted_width - self._width) * min(1.0, seconds / self._config.time_constant)
            pose, wrench = self._tool.pose, self._tool.wrench()
            self._break_down(now, float(np.linalg.norm(wrench[:3])))
            silent = self._lasts("freeze", now) or self._fault == KINDS["lost"]
        if not silent:
            self._report(now, pose, wrench)

    def _break_down(self, now: int, force: float) -> None:
        """Let a fault happen that is due, or follows from too large a force."""
        while self._planned and 1e-9 * (now - self._begun) >= self._planned[0].at:
            kind = self._planned.pop(0).kind
            if not KINDS[kind]:
                self._until[kind] = now + round(1e9 * DURATION)
                continue
            if kind == "estop":
                self._pressed_until = now + round(1e9 * PRESSED)
            self._stop_itself(KINDS[kind])
        if force > self._config.reflex_force and not self._fault:
            self._stop_itself(f"{KINDS['reflex']}: {force:.0f} N, limit {self._config.reflex_force:.0f} N")

    def _lasts(self, kind: str, now: int) -> bool:
        return now < self._until.get(kind, 0)

    def _stop_itself(self, fault: str) -> None:
        self._fault = fault
        self._tool.hold()

    def _report(self, now: int, pose: Pose, wrench: np.ndarray) -> None:
        noise, without_wrench = self._rng.standard_normal(6), self._lasts("wrench", now)
        now -= round(1e9 * SET_BACK) if self._lasts("clock", now) else 0
        measured = Pose(pose.position + self._config.pose_noise * noise[:3], pose.quaternion)
        force = wrench + np.concatenate([self._config.force_noise * noise[3:], np.zeros(3)])
        self._receive("twist", now, self._twist.add(now, measured))
        if not without_wrench:
            self._receive("wrench", now, force)
        self._receive("joints", now, Joints(np.zeros(JOINTS), np.zeros(JOINTS)))
        if self._config.gripper:
            self._receive("gripper", now, self._width)
        self._receive("pose", now, measured)


def _discard(part: str, stamp: int, value: object) -> None:
    """Drop what is measured before `start` and after `close`."""
