"""From a policy's action to a command that may be sent: scaling, workspace box, locked axes, feed-forward wrench.

The same code runs in simulation and on the robot.

The set-point is the measured pose plus the action, so the reference never runs away from the arm and the static contact
force is bounded by the stiffness times the largest displacement. So is that of a gripper which is moved to any width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_rl.env.feed_forward.wrench_border import BORDER_STIFFNESS, BORDER_TURN_STIFFNESS, LOOK_AHEAD, held_back
from robot_rl.env.robot_io import Command, RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ActionError, ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, rotvec_from_quat

AXES = ("x", "y", "z", "roll", "pitch", "yaw")
GRIPPER_THRESHOLD = 0.5
"""Size of the last entry of an action from which on a choice of the gripper opens or closes it."""


@dataclass(frozen=True, eq=False)
class SafeCommand:
    """A command and what it took to make it safe.

    Attributes:
        command: What to send.
        clipped: Distance by which the workspace moved the set-point, per axis of x, y, z [m] and the rotation vector
            [rad]. Shape (6,). Zero where the action was within the box.
    """

    command: Command
    clipped: np.ndarray


def describe_actions(spec: TaskSpec) -> str:
    """Return what each entry of an action of a task moves at 1, in their order, and how often it is chosen."""
    entries = []
    for name, arm in spec.each.items():
        whose = f"{name} " if name else ""
        motion = ("", arm.action_axes, (arm.action_translation, "m"), (arm.action_rotation, "rad"))
        wrench = ("push ", arm.wrench_axes, (arm.action_force, "N"), (arm.action_torque, "Nm"))
        for what, axes, along, about in (motion, wrench):
            for axis in axes:
                size, unit = along if axis in AXES[:3] else about
                entries.append(f"{whose}{what}{axis} {size:g} {unit}")
        if arm.gripper and arm.gripper_step:
            entries.append(f"{whose}gripper {arm.gripper_step:g} m")
    if spec.grippers:
        entries.append("gripper" if spec.grippers == 1 else f"{spec.grippers} grippers")
    return f"{', '.join(entries)}, every {spec.control_period:g} s"


def check_action(action: object, spec: TaskSpec) -> np.ndarray:
    """Return an action of a task as float32, shape (n,).

    Raises:
        ActionError: if its shape is wrong, it is not finite, or it leaves [-1, 1].
    """
    try:
        array = np.asarray(action, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ActionError(f"action is not an array of numbers: {error}") from error
    if array.shape != (spec.action_size,):
        raise ActionError(f"action has shape {array.shape}, task {spec.name} takes ({spec.action_size},)")
    if not np.abs(array).max() <= 1.0 + 1e-6:  # a NaN, too, is not
        wrong = "leaves [-1, 1]" if np.isfinite(array).all() else "has a NaN or an infinity"
        raise ActionError(f"action {wrong}: {array.tolist()}")
    return np.minimum(np.maximum(array, -1.0), 1.0)


def check_wrench_axes(spec: TaskSpec) -> None:
    """Check the feed-forward wrench of a task.

    Raises:
        ConfigError: if an axis does not exist or appears twice, or a size does not fit the axes.
    """
    axes = spec.wrench_axes
    if wrong := [axis for axis in axes if axis not in AXES or axes.count(axis) > 1]:
        raise ConfigError(f"task {spec.name}: wrench_axes: {', '.join(wrong)}; valid: {', '.join(AXES)}, each once")
    for name, size, unit, own in (
        ("action_force", spec.action_force, "N", AXES[:3]),
        ("action_torque", spec.action_torque, "Nm", AXES[3:]),
    ):
        if not (math.isfinite(size) and size >= 0.0 and bool(size) == bool(set(own) & set(axes))):
            raise ConfigError(
                f"task {spec.name}: {name} is {size:g} {unit}; it is finite and above 0 where wrench_axes has any of "
                f"{', '.join(own)}, else 0"
            )


def check_no_wrench(spec: TaskSpec, arm: str) -> None:
    """Check that a task commands no feed-forward wrench, for an arm that follows none.

    Args:
        spec: The task.
        arm: Which arm, or what drives it, for the message.

    Raises:
        ConfigError: naming the axes of the wrench.
    """
    for name, own in spec.each.items():
        if own.wrench_axes:
            whose = f"arms.{name}: " if name else ""
            raise ConfigError(
                f"task {spec.name}: {whose}wrench_axes are {', '.join(own.wrench_axes)}, and {arm} follows set-points "
                "only; a simulated arm takes a wrench, too; leave out wrench_axes, or choose another task"
            )


class SafetyFilter:
    """Turn actions into commands within the task's limits.

    Args:
        spec: The task's limits.
        ttl_periods: How many control periods a command is good for; then the arm holds.

    Raises:
        ConfigError: if the task names an axis that does not exist, its gripper cannot make the step that it names, or
            its wrench has no axes or no size.
    """

    def __init__(self, spec: TaskSpec, ttl_periods: float = 3.0) -> None:
        if unknown := [axis for axis in spec.action_axes if axis not in AXES]:
            raise ConfigError(f"unknown action axes {unknown} in task {spec.name}; valid: {', '.join(AXES)}")
        if spec.gripper_step and not (spec.gripper and 0.0 < spec.gripper_step <= spec.gripper_open_width):
            raise ConfigError(
                f"task {spec.name}: gripper_step is {spec.gripper_step:g} m; it needs gripper: true, and is at most "
                f"gripper_open_width, {spec.gripper_open_width:g} m, or 0 for a gripper that only closes and opens"
            )
        check_wrench_axes(spec)
        self._spec = spec
        self._ttl = ttl_periods * spec.control_period
        scale = np.repeat([spec.action_translation, spec.action_rotation], 3)
        index = [AXES.index(axis) for axis in spec.action_axes]
        self._to_displacement = np.zeros((6, len(index)))  # action to displacement of the tcp [m, rad]
        self._to_displacement[index, range(len(index))] = scale[index]
        pushed = [AXES.index(axis) for axis in spec.wrench_axes]
        self._to_wrench = np.zeros((6, len(pushed)))  # action to wrench at the tcp [N, Nm]
        self._to_wrench[pushed, range(len(pushed))] = np.repeat([spec.action_force, spec.action_torque], 3)[pushed]
        free = np.array([axis in spec.action_axes for axis in AXES], dtype=float)
        self._free_position, self._free_rotation = free[:3], free[3:]
        self._low, self._high = np.array(spec.workspace.low), np.array(spec.workspace.high)

    def check(self, action: object) -> np.ndarray:
        """Return the action as float32, shape (n,).

        Raises:
            ActionError: if its shape is wrong, it is not finite, or it leaves [-1, 1].
        """
        return check_action(action, self._spec)

    def apply(self, action: np.ndarray, state: RobotState, T_base_reset: Pose, stamp: int) -> SafeCommand:
        """Return the command for a checked action.

        Args:
            action: In [-1, 1], shape (n,): tcp-frame displacement per axis, feed-forward wrench per axis, and the
                gripper if the task has one.
            state: Newest state.
            T_base_reset: Pose of the tcp at the start of the episode; the workspace is relative to it.
            stamp: Now [ns].
        """
        box, measured = self._spec.workspace, state.T_base_tcp
        displacement = self._to_displacement @ action[: self._to_displacement.shape[1]]
        position = measured.position + quat_rotate(measured.quaternion, displacement[:3])
        wanted_offset = self._free_position * (position - T_base_reset.position)
        offset = self._in_box(wanted_offset)

        turned = quat_multiply(measured.quaternion, quat_from_rotvec(displacement[3:]))
        relative = rotvec_from_quat(quat_multiply(quat_conjugate(T_base_reset.quaternion), turned))
        wanted_rotation = self._free_rotation * relative
        rx, ry, rz = wanted_rotation.tolist()
        tilt = math.hypot(rx, ry)
        shrink = min(1.0, box.tilt / tilt) if tilt > 0.0 else 1.0
        rotation = np.array((shrink * rx, shrink * ry, min(max(rz, -box.yaw), box.yaw)))

        target = Pose(
            T_base_reset.position + offset, quat_multiply(T_base_reset.quaternion, quat_from_rotvec(rotation))
        )
        clipped = np.concatenate((wanted_offset - offset, wanted_rotation - rotation))
        wrench = self._wrench(action, state, T_base_reset, offset, rotation)
        gripper = self._gripper_target(action, state)
        return SafeCommand(Command(stamp, self._ttl, target, gripper, wrench=wrench), clipped)

    def confine(self, position: np.ndarray, T_base_reset: Pose) -> np.ndarray:
        """Return the position in the workspace, locked axes at their reset value, that is nearest to one [m]."""
        return T_base_reset.position + self._in_box(self._free_position * (position - T_base_reset.position))

    def _in_box(self, offset: np.ndarray) -> np.ndarray:
        return np.minimum(np.maximum(offset, self._low), self._high)

    def _wrench(
        self,
        action: np.ndarray,
        state: RobotState,
        T_base_reset: Pose,
        offset: np.ndarray,
        rotation: np.ndarray,
    ) -> np.ndarray | None:
        """Return the wrench of an action, which pushes no tcp out of the workspace; None where there is none.

        Args:
            action: In [-1, 1], shape (n,).
            state: Newest state.
            T_base_reset: Pose of the tcp at the start of the episode.
            offset: Of the set-point from there, base frame [m].
            rotation: How far it is turned from there [rad].
        """
        steps, axes = self._to_displacement.shape[1], self._to_wrench.shape[1]
        wanted = self._to_wrench @ action[steps : steps + axes]
        if not wanted.any():
            return None
        box, measured, twist = self._spec.workspace, state.T_base_tcp, state.twist
        here = measured.position - T_base_reset.position
        places = np.array((here, here + LOOK_AHEAD * twist[:3], offset))
        force = held_back(quat_rotate(measured.quaternion, wanted[:3]), self._low, self._high, places, BORDER_STIFFNESS)
        force = quat_rotate(quat_conjugate(measured.quaternion), force)

        from_reset = quat_multiply(quat_conjugate(T_base_reset.quaternion), measured.quaternion)
        turned = rotvec_from_quat(from_reset)
        turning = quat_rotate(quat_conjugate(T_base_reset.quaternion), twist[3:])
        turns = np.array((turned, turned + LOOK_AHEAD * turning, rotation))
        rx, ry, _ = np.minimum(np.abs(turns).max(axis=0), box.tilt)
        limits = np.array((math.sqrt(box.tilt**2 - ry**2), math.sqrt(box.tilt**2 - rx**2), box.yaw))
        torque = quat_rotate(from_reset, wanted[3:])
        torque = held_back(torque, -limits, limits, turns, BORDER_TURN_STIFFNESS)
        return np.concatenate((force, quat_rotate(quat_conjugate(from_reset), torque)))

    def _gripper_target(self, action: np.ndarray, state: RobotState) -> float | None:
        """-1 closes, +1 opens, 0 leaves it as it is; thresholds at a half, or steps from the measured width."""
        spec = self._spec
        if not spec.gripper or not action[-1]:
            return None
        if spec.gripper_step:
            width = state.gripper_width + float(action[-1]) * spec.gripper_step
            return min(max(width, 0.0), spec.gripper_open_width)
        if abs(action[-1]) < GRIPPER_THRESHOLD:
            return None
        return 0.0 if action[-1] < 0.0 else spec.gripper_open_width
