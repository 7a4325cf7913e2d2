"""The last cap on set-points, where an arm is driven: a second, simpler check behind the safety node's limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.feed_forward.wrench_limiter import PARTS
from robot_rl.env.robot_io import Command
from robot_rl.errors import CommandRefusedError, ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, rotvec_from_quat


class SetPointCap:
    """Caps the lead of set-points, refuses those outside a box, and judges the measured speed.

    Args:
        config: The cap.

    Raises:
        ConfigError: if the box is not one.
    """

    def __init__(self, config: ArmCap) -> None:
        if not (
            len(config.cap_box_low) == len(config.cap_box_high) == 3
            and np.less(config.cap_box_low, config.cap_box_high).all()
        ):
            raise ConfigError(
                f"cap_box_low {list(config.cap_box_low)} and cap_box_high {list(config.cap_box_high)} have to be three "
                "numbers each, every one of the first below that of the second"
            )
        self._config = config
        self._low, self._high = np.array(config.cap_box_low), np.array(config.cap_box_high)

    def apply(self, command: Command, pose: Pose) -> Command:
        """Return the command with its lead within the cap; the same object if it is. Its wrench stays as it is.

        Args:
            command: Which.
            pose: The newest measured one of the tcp in the base frame.

        Raises:
            CommandRefusedError: if its set-point is outside the box, and further out than the tcp is; if its
                feed-forward force or torque is beyond the cap.
        """
        if command.wrench is not None:
            self._check_wrench(command.wrench)
        target = command.T_base_target
        outside = self._outside(target.position)
        if outside > self._outside(pose.position):
            raise CommandRefusedError(f"its set-point is {1e3 * outside:.0f} mm outside the arm's own box (cap_box_*)")
        lead = target.position - pose.position
        turn = rotvec_from_quat(quat_multiply(quat_conjugate(pose.quaternion), target.quaternion))
        too_far = float(np.linalg.norm(lead)) / self._config.cap_lead
        too_turned = float(np.linalg.norm(turn)) / self._config.cap_turn
        if max(too_far, too_turned) <= 1.0:
            return command
        position = pose.position + lead / too_far if too_far > 1.0 else target.position
        quaternion = target.quaternion
        if too_turned > 1.0:
            quaternion = quat_multiply(pose.quaternion, quat_from_rotvec(turn / too_turned))
        return replace(command, T_base_target=Pose(position, quaternion))

    def overspeed(self, twist: np.ndarray) -> str | None:
        """Return in what a measured twist, shape (6,), is too fast; None if it is not."""
        for part, largest, unit in (
            (twist[:3], self._config.cap_speed, "m/s"),
            (twist[3:], self._config.cap_turn_rate, "rad/s"),
        ):
            speed = float(np.linalg.norm(part))
            if speed > largest:
                return f"the tcp moves at {speed:.2f} {unit}, the arm's own cap is {largest:g} {unit}"
        return None

    def exceeded_by(self, limits: CommandLimits) -> list[str]:
        """List the limits that are wider than the cap, each with both numbers."""
        cap, wider = self._config, []
        for name, axes, caps, sign in (
            ("box_low", limits.box_low, cap.cap_box_low, -1.0),
            ("box_high", limits.box_high, cap.cap_box_high, 1.0),
        ):
            if any(sign * mine > sign * most for mine, most in zip(axes, caps, strict=True)):
                wider.append(f"{name} {list(axes)} is outside cap_{name} {list(caps)}")
        for name, mine, capped, most in (
            ("max_speed", limits.max_speed, "cap_speed", cap.cap_speed),
            ("max_turn_rate", limits.max_turn_rate, "cap_turn_rate", cap.cap_turn_rate),
            ("max_speed * reaction_time", limits.max_speed * limits.reaction_time, "cap_lead", cap.cap_lead),
            ("max_turn_rate * reaction_time", limits.max_turn_rate * limits.reaction_time, "cap_turn", cap.cap_turn),
            ("max_feedforward_force", limits.max_feedforward_force, "cap_feedforward_force", cap.cap_feedforward_force),
            (
                "max_feedforward_torque",
                limits.max_feedforward_torque,
                "cap_feedforward_torque",
                cap.cap_feedforward_torque,
            ),
        ):
            if mine > most:
                wider.append(f"{name} {mine:.4g} is more than {capped} {most:.4g}")
        return wider

    def _check_wrench(self, wrench: np.ndarray) -> None:
        largest = self._config.cap_feedforward_force, self._config.cap_feedforward_torque
        for (part, name, unit), most in zip(PARTS, largest, strict=True):
            amount = float(np.linalg.norm(wrench[part]))
            if amount > most * (1.0 + 1e-9):
                raise CommandRefusedError(
                    f"its feed-forward {name} is {amount:.3g} {unit}, the arm's own cap is {most:g} {unit} "
                    f"(cap_feedforward_{name})"
                )

    def _outside(self, position: np.ndarray) -> float:
        return float(np.linalg.norm(position - np.clip(position, self._low, self._high)))
