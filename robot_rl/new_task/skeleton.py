"""The files of a new task: text with its name filled in.

What they say runs as it is: a button is pressed. This room knows text and names that are taken, and no simulator.
"""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path
from string import Template

from robot_rl.env.registry import environment_names, task_names
from robot_rl.errors import ConfigError
from robot_rl.system.atomic_file import write_atomically
from robot_rl.system.build_aside import build_aside

SKELETON = Path(__file__).parent / "skeleton"
FILES = {
    "task.py.txt": "{name}.py",
    "test.py.txt": "test_{name}.py",
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
}
"""What each text is named in the package of the task."""
VALID = re.compile(r"[a-z][a-z0-9_]*")


def check_name(name: str, folder: Path) -> None:
    """Raise if a new task in `folder` cannot have this name.

    Raises:
        ConfigError: if it is no valid name, is taken, or something of that name is in the folder.
    """
    if not VALID.fullmatch(name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} cannot name a task: small letters, digits and underscores, a letter first, no keyword of "
            "Python; e.g. press_button"
        )
    if name in task_names() or name in environment_names():
        raise ConfigError(f"{name} is a task that is installed already (`robot-rl tasks`); choose another name")
    place = folder / name
    if place.exists() or place.is_symlink():
        raise ConfigError(f"{place} exists, and is never overwritten; choose another name, or move it away")
    if find_spec(name) is not None:
        raise ConfigError(f"{name} is a module of Python or of a package, which the task would hide; choose another")


def write_skeleton(name: str, folder: Path) -> list[Path]:
    """Write the package of a new task into `folder/name`, whole or not at all, and return its files.

    Raises:
        ConfigError: if it cannot have this name.
        RunDirectoryError: if the folder cannot be written.
    """
    check_name(name, folder)
    fill = {"name": name, "Name": "".join(part.capitalize() for part in name.split("_"))}
    with build_aside(folder / name) as place:
        for source, target in FILES.items():
            text = Template((SKELETON / source).read_text(encoding="utf-8")).substitute(fill)
            write_atomically(place / target.format(name=name), text)
    return [folder / name / target.format(name=name) for target in FILES.values()]
