"""All checks of a machine, ours and those of other packages, in the order in which people read them.

Checks of other packages are found by their entry points in the group `robot_rl.checks`: a function from the `Machine`
to its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from robot_rl.doctor import checks
from robot_rl.doctor.contract.machine import Machine
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.env.registry import load, names
from robot_rl.errors import RobotRLError

CHECK_GROUP = "robot_rl.checks"

Check = Callable[[Machine], Iterable[CheckResult]]
"""A check: from the machine to what it found."""


def examine(machine: Machine) -> Iterator[CheckResult]:
    """Yield what each check finds, as soon as it has."""
    for check in checks.MACHINE_CHECKS:
        yield from check(machine)
    for name in names(CHECK_GROUP):
        try:
            yield from cast("Check", load("check", CHECK_GROUP, name))(machine)
        except RobotRLError as error:
            yield CheckResult(
                f"check {name}", "note", f"could not be made: {error}", cure="uninstall or repair its package"
            )
