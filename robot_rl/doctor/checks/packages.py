"""Do the installed packages satisfy what robot_rl requires, and are they the versions that were tested?"""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import robot_rl
from robot_rl.doctor.contract.machine import Machine, read_text
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.system.sister_packages import collisions

CONSTRAINTS = Path(robot_rl.__file__).parents[1] / "constraints.txt"
"""The versions that are tested; in a checkout only."""
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?$")


def check_packages(
    machine: Machine,
    requirements: list[str] | None = None,
    installed: Callable[[str], str | None] | None = None,
    constraints: Path = CONSTRAINTS,
) -> Iterator[CheckResult]:
    """Compare versions.

    Args:
        machine: What is examined.
        requirements: Of robot_rl, as its metadata has them; None reads those.
        installed: Returns the installed version of a package, None if there is none; None reads the metadata.
        constraints: File of tested versions, `name==version` a line.
    """
    del machine
    installed = installed or _installed
    if requirements is None:
        requirements = importlib.metadata.requires("robot_rl") or []
    wrong: list[str] = []
    optional: list[str] = []
    for text in requirements:
        parsed = _REQUIREMENT.match(text)
        if parsed is None:
            continue
        name, wanted, condition = parsed[1], parsed[2].strip(), parsed[3] or ""
        version = installed(name)
        if version is None:
            if not condition:
                wrong.append(f"{name} is missing")
        elif any(not _fits(version, part) for part in wanted.split(",") if part.strip()):
            (optional if condition else wrong).append(f"{name} {version} is installed, required is {wanted}")
    python = platform.python_version()
    yield CheckResult(
        "packages",
        "fault" if wrong else "ok",
        "; ".join(wrong) if wrong else f"robot_rl {robot_rl.__version__} on Python {python} has all that it requires",
        cure="pip install --upgrade robot_rl" if wrong else "",
    )
    if optional:
        yield CheckResult(
            "packages of extras",
            "note",
            f"{'; '.join(optional)}: what needs it may fail",
            cure="pip install --upgrade 'robot_rl[EXTRA]', with the extra that you use",
        )
    lines = (read_text(constraints) or "").splitlines()
    tested = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", "\n".join(lines), re.MULTILINE))
    others = {}
    for name, version in tested.items():
        found = installed(name)
        if found is not None and found.partition("+")[0] != version.partition("+")[0]:  # `+cpu` is the same source
            others[name] = found
    if others:
        listed = [f"{name} {found} (tested: {tested[name]})" for name, found in others.items()]
        yield CheckResult(
            "tested versions",
            "note",
            f"other versions than the tested ones are installed: {', '.join(listed[:8])}"
            + (", ..." if len(listed) > 8 else ""),
            len(others),
            "packages",
            "none",
            "pip install -c constraints.txt -e .",
        )
    for collision in collisions():
        yield CheckResult("package names", "fault", collision, cure="python -m venv .venv, and install robot_rl there")


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fits(version: str, condition: str) -> bool:
    """Return whether a version satisfies a condition such as `>=2.0`, `<5` or `==0.17.6`, by its numbers."""
    parsed = re.match(r"\s*(>=|<=|==|<|>|!=)\s*([\d.]+)", condition)
    if parsed is None:
        return True  # a marker or an address: pip has seen to it
    have, want = _numbers(version), _numbers(parsed[2])
    size = max(len(have), len(want))
    have, want = have + (0,) * (size - len(have)), want + (0,) * (size - len(want))
    return {
        ">=": have >= want,
        "<=": have <= want,
        "==": have == want,
        "<": have < want,
        ">": have > want,
        "!=": have != want,
    }[parsed[1]]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[+a-z]", version, maxsplit=1)[0]))
