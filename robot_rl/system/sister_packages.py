"""The packages that are installed beside `robot_rl` under plain names: whether an import gives ours.

`sim`, `calibration` and `ros_nodes` are names that other projects use too. Python takes the first on its path, and pip
lets two distributions write into one folder without a word, so ours carry a mark and are looked at before an import.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import robot_rl
from robot_rl.errors import PluginError

SISTER_PACKAGES = ("sim", "calibration", "ros_nodes")
MARK = 'PART_OF = "robot_rl"'
"""A line of the `__init__.py` of each."""


def check_sister(module: str) -> None:
    """Raise unless a module of `sim`, `calibration` or `ros_nodes` is ours; every other module passes.

    Nothing is imported.

    Raises:
        PluginError: if Python would import the package of another project, or finds none.
    """
    package = module.partition(".")[0]
    if package not in SISTER_PACKAGES:
        return
    ours = _home() / package
    spec = find_spec(package)
    if spec is None:
        raise PluginError(f"the package {package!r} of robot_rl is missing at {ours}; install robot_rl again")
    found = Path(spec.origin).parent if spec.origin and spec.submodule_search_locations else None
    if found is None or not _same(found, ours):
        theirs = found or Path(spec.origin or next(iter(spec.submodule_search_locations or ()), "nowhere"))
        raise PluginError(
            f"{package!r} is imported from {theirs}, which belongs to another project; that of robot_rl is at {ours}; "
            f"{_cure(theirs)}"
        )
    init = ours / "__init__.py"
    if init.is_file() and MARK not in init.read_text(encoding="utf-8", errors="replace"):
        owners = ", ".join(_other_owners(package)) or "another project"
        raise PluginError(
            f"{init} was overwritten by {owners}, which installs a package {package!r} into the same folder as "
            f"robot_rl; give robot_rl a virtual environment of its own, and install it there again"
        )


def exit_unless_ours(*modules: str) -> None:
    """End the program with the reason if one of these is not ours: for scripts, before they import it."""
    try:
        for module in modules:
            check_sister(module)
    except PluginError as error:
        sys.exit(f"robot-rl: {error}")


def collisions() -> Iterator[str]:
    """Yield a sentence for each package of another project that shares a name with one of ours."""
    for package in SISTER_PACKAGES:
        for owner in _other_owners(package):
            yield (
                f"{owner} installs a package {package!r} too: the one that was installed last has overwritten files of "
                "the other; give robot_rl a virtual environment of its own"
            )
        for theirs in _on_path(package):
            yield (
                f"robot_rl has a package {package!r} at {_home() / package}, and {theirs} has that name too: a program "
                f"gets only the first on its path; {_cure(theirs)}"
            )


def _home() -> Path:
    return Path(robot_rl.__file__).parents[1]


def _same(one: Path, other: Path) -> bool:
    return one == other or one.resolve() == other.resolve()  # a workspace may consist of links


def _on_path(package: str) -> Iterator[Path]:
    ours = (_home() / package).resolve()
    for entry in dict.fromkeys(Path(entry).resolve() for entry in sys.path):
        for theirs in (entry / package, entry / f"{package}.py"):
            is_package = theirs.is_file() or (theirs / "__init__.py").is_file()
            if is_package and theirs.resolve() != ours:
                yield theirs


def _other_owners(package: str) -> list[str]:
    """Return the other distributions that have put files into our folder of this name."""
    ours, owners = (_home() / package).resolve(), set()
    for distribution in importlib.metadata.distributions():
        if Path(str(distribution.locate_file(package))).resolve() == ours:
            files = f"\n{distribution.read_text('RECORD') or ''}"  # not `files`, which looks at each: seconds for torch
            if f"\n{package}/" in files:
                owners.add(distribution.metadata["Name"])
    return sorted(owners - {"robot_rl"})


def _cure(theirs: Path) -> str:
    home = theirs.parent.resolve()
    python_path = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if home in python_path:
        return f"take {home} out of PYTHONPATH"
    if home == Path.cwd().resolve():
        return "call `robot-rl` from another directory"
    return "give robot_rl a virtual environment of its own"
