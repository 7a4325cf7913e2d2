"""The servos of an arm as a `JointPort`: calibration, settings, torque, and what a loss of power leaves behind."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from robot_rl.arm.joints.joint_port import JointReading
from robot_rl.arm.servo.calibration import (
    CountScale,
    ServoCalibration,
    check_calibration,
    load_calibration,
    read_calibration,
)
from robot_rl.arm.servo.family import COUNTS_PER_TURN
from robot_rl.arm.servo.register import Register
from robot_rl.arm.servo.servo_bus import ServoBus
from robot_rl.clock import NS_PER_S, Clock
from robot_rl.errors import ArmStoppedError, RobotLostError

REBOOT_TIME = 0.6
"""Of a servo that is restarted after a fault [s]."""
TORQUE_PERIOD = 0.25
"""Between two looks at whether all servos still have torque [s]: a dip of the supply may cost no answer."""


class ServoJoints:
    """Servos of the joints, and perhaps one of a gripper as the last.

    Args:
        bus: The servos.
        idents: Ids by their names, in the order of the bus.
        gripper: Whether the last one is the gripper's.
        clock: Time since 1970 [ns].
        calibration: LeRobot's file; None takes what the servos keep.
        moved_by_hand: Whether a person moves the arm: then the torque is switched off, and settings stay as they are.

    Raises:
        ConfigError: if the calibration is missing, or that of another arm.
        ArmStoppedError: if the settings of the servos differ, and cannot be changed now.
        RobotLostError: if a servo does not answer.
    """

    resolution = 2.0 * np.pi / COUNTS_PER_TURN

    def __init__(
        self,
        bus: ServoBus,
        idents: Mapping[str, int],
        gripper: bool,
        clock: Clock,
        calibration: Path | None,
        moved_by_hand: bool = False,
    ) -> None:
        self._bus, self.has_gripper, self._clock = bus, gripper, clock
        self._joints = len(idents) - gripper
        file = load_calibration(calibration, idents) if calibration is not None else None
        bus.find()
        kept = read_calibration(bus, idents)
        check_calibration(kept, file)
        self._scale = CountScale(list(kept.values())[: self._joints])
        self._jaws: ServoCalibration | None = list(kept.values())[-1] if gripper else None
        if moved_by_hand:
            bus.set(bus.family.registers.torque, [0] * len(idents))
        else:
            self._prepare()
        self._is_engaged = False
        self._look_at_torque = False
        self._torque_seen = 0  # [ns]
        self._failures = 0
        self._goals = np.zeros(len(idents), int)
        self._stopped: dict[str, str] = {}

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest angle of the calibration [rad], shapes (n,)."""
        return self._scale.limits

    def engage(self) -> JointReading:
        """Switch the torque on where it is off; a servo without torque first gets its position as its goal.

        Raises:
            ArmStoppedError: if a fault stays.
            RobotLostError: if a servo does not answer.
        """
        self._end_faults()
        registers = self._bus.family.registers
        torque = self._bus.get(registers.torque)
        state = self._bus.state()
        if state.faults:
            raise ArmStoppedError("; ".join(together(state.faults.values())))
        positions = [servo.position for servo in state.servos]
        limp = [not on for on in torque]
        if any(limp):
            self._bus.set(registers.goal, [at if off else None for at, off in zip(positions, limp, strict=True)])
            self._bus.set(registers.torque, [1 if off else None for off in limp])
            if not all(self._bus.get(registers.torque)):
                raise ArmStoppedError("the servos do not switch their torque on; check the power supply of the arm")
        self._goals = np.array(self._bus.get(registers.goal))
        self._stopped, self._is_engaged = {}, True
        return self._reading(self._clock.now(), self._goals, np.zeros(self._goals.shape))

    def read(self) -> JointReading:
        """Measure all servos.

        Raises:
            RobotLostError: if one does not answer.
        """
        stamp = self._clock.now()  # the servos measure after it: a stamp is never too young
        try:
            state = self._bus.state()
        except RobotLostError:
            self._look_at_torque = True
            raise
        failures = sum(self._bus.failures.values())
        if failures != self._failures:  # servos that lost power for a moment answer again, without torque
            self._failures, self._look_at_torque = failures, True
        due = (stamp - self._torque_seen) / NS_PER_S > TORQUE_PERIOD
        if (self._look_at_torque or due) and self._is_engaged:
            self._find_limp()
            self._look_at_torque, self._torque_seen = False, stamp
        if new := {name: text for name, text in state.faults.items() if name not in self._stopped}:
            self._stopped |= new
            self._bus.send_goals([servo.position for servo in state.servos])  # takes the load off
        position, velocity = (
            np.array([getattr(servo, key) for servo in state.servos], float) for key in ("position", "velocity")
        )
        return self._reading(stamp, position, velocity)

    def write(self, position: np.ndarray, opening: float | None) -> None:
        """Command positions; while a servo has stopped, nothing is commanded.

        Raises:
            LineLostError: if the port is gone.
        """
        if self._stopped:
            return
        goals = self._goals.copy()
        goals[: self._joints] = self._scale.counts(position)
        if opening is not None and self._jaws is not None:
            goals[-1] = round(self._jaws.low + opening * (self._jaws.high - self._jaws.low))
        self._goals = goals
        self._bus.send_goals(goals.tolist())

    def faults(self) -> list[str]:
        """Return why servos have stopped."""
        return together(self._stopped.values())

    def close(self) -> None:
        """Close the line; the servos hold their last goals."""
        self._bus.close()

    def _reading(self, stamp: int, counts: np.ndarray, speeds: np.ndarray) -> JointReading:
        opening = None
        if self._jaws is not None:
            opening = float((counts[-1] - self._jaws.low) / (self._jaws.high - self._jaws.low))
        n = self._joints
        return JointReading(stamp, self._scale.angles(counts[:n]), speeds[:n] * self.resolution, opening)

    def _find_limp(self) -> None:
        torque = self._bus.get(self._bus.family.registers.torque)
        limp = [name for name, on in zip(self._bus.names, torque, strict=True) if not on]
        if limp:  # a servo that stopped itself switches its torque off, too; that has a name of its own
            stopped = {*self._stopped, *self._bus.state().faults}
            limp = [name for name in limp if name not in stopped]
        if limp:
            self._stopped["torque"] = (
                f"the servos {', '.join(limp)} have no torque: their power failed, or somebody switched it off. "
                "Support the arm, check its power supply, and consent to go on"
            )

    def _end_faults(self) -> None:
        """Restart the servos that stopped themselves, in the way of their family."""
        names = [name for name in self._stopped if name in self._bus.names]
        if not names:
            return
        if self._bus.family.error_register is not None:
            self._bus.reboot(names)
            time.sleep(REBOOT_TIME)
            self._prepare()
        else:
            values = [0 if name in names else None for name in self._bus.names]
            self._bus.set(self._bus.family.registers.torque, values)

    def _prepare(self) -> None:
        """Write the settings that differ; servos keep them, and wear out by writing."""
        family = self._bus.family
        arm, jaws = dict(family.settings), dict(family.settings) | dict(family.gripper_settings)
        wanted = {register: [arm.get(register)] * self._joints for register in jaws}
        if self.has_gripper:
            wanted = {register: [*values, jaws[register]] for register, values in wanted.items()}
        differing: dict[Register, list[int | None]] = {}
        for register, values in wanted.items():
            found = self._bus.get(register)
            if any(value not in (None, now) for value, now in zip(values, found, strict=True)):
                differing[register] = [
                    value if value != now else None for value, now in zip(values, found, strict=True)
                ]
        if not differing:
            return
        torque = self._bus.get(family.registers.torque)
        changed = [any(values[i] is not None for values in differing.values()) for i in range(len(torque))]
        if any(on and change for on, change in zip(torque, changed, strict=True)):
            raise ArmStoppedError(
                f"settings of the servos differ ({', '.join(register.name for register in differing)}), and servos "
                "take new ones without torque only: support the arm, switch its power off and on, and start again"
            )
        if family.lock is not None:
            self._bus.set(family.lock, [0] * len(torque))
        for register, values in differing.items():
            self._bus.set(register, values)
        if family.lock is not None:
            self._bus.set(family.lock, [1] * len(torque))


def together(sentences: Iterable[str]) -> list[str]:
    """Return sentences of the form `servo 1 (elbow): it is ...`, those that say the same of several servos as one."""
    who: dict[str, list[str]] = {}
    for sentence in sentences:
        servo, _, what = sentence.partition(": ")
        who.setdefault(what, []).append(servo)
    return [f"{', '.join(servos)}: {what}" for what, servos in who.items()]
