"""The guards of a cell, of one arm or of the arms that a task file names, kept apart as it says.

It knows limits and task files; it does not know who commands, nor ROS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from robot_rl.arm.several_guards import SeveralGuards
from robot_rl.cell.task_file import load_task
from robot_rl.config.command_limits import CommandLimits, limits_of_arm, parse_arm_limits
from robot_rl.env.cell_geometry.keep_out import KeepOut
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.task_arms import last_keep_out_of
from robot_rl.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, eq=False)
class CellGuards:
    """Guards of all arms.

    Attributes:
        whole: What a command has to pass.
        each: What takes the measurements of each arm, by its name; a single arm has none: `""`.
        kept_apart: Whether something keeps several arms apart.
    """

    whole: CommandGuard | SeveralGuards
    each: Mapping[str, CommandGuard]
    kept_apart: bool

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of several arms; none for one."""
        return tuple(name for name in self.each if name)


def guards_for(
    limits: CommandLimits, arms: Sequence[str] = (), task_file: str = "", arm_limits: Sequence[str] = ()
) -> CellGuards:
    """Make the guards of a cell.

    Args:
        limits: Of each arm, in its own base frame.
        arms: Names of several arms; none: those in the task file, or one arm without a name.
        task_file: The task's facts (YAML), by whose `keep_out` arms are kept apart; empty: nothing keeps them apart.
        arm_limits: As for `parse_arm_limits`.

    Raises:
        ConfigError: if the task file is not valid, or is for other arms than those that are named, or the limits of an
            arm are not valid.
        UnknownNameError: if `arm_limits` name no arm or no limit.
    """
    names, keep_out = tuple(arms), None
    if task_file:
        path = Path(task_file).expanduser()
        spec = load_task(path, path.stem)
        if names and set(names) != set(spec.arms):
            raise ConfigError(
                f"arms are {', '.join(names)}, and {task_file} is for {', '.join(spec.arms) or 'one, without a name'}; "
                "leave arms out, or name those of the file"
            )
        names, keep_out = tuple(spec.arms), last_keep_out_of(spec)
    differing = parse_arm_limits(arm_limits)
    if differing and not names:
        raise ConfigError(f"arm_limits name {', '.join(differing)}, and there is one arm, without a name")
    for name in differing:
        if name not in names:
            raise UnknownNameError("arm in arm_limits", name, names)
    each = {name: _guard(name, limits_of_arm(limits, name, differing), keep_out) for name in names or ("",)}
    whole = SeveralGuards(each, keep_out) if names else each[""]
    return CellGuards(whole, each, keep_out is not None)


def _guard(name: str, limits: CommandLimits, keep_out: KeepOut | None) -> CommandGuard:
    pushes = bool(limits.max_feedforward_force or limits.max_feedforward_torque)
    try:
        return CommandGuard(limits, needs_twist=pushes or keep_out is not None)
    except ConfigError as error:
        raise ConfigError(f"arm {name}: {error}" if name else str(error)) from error
