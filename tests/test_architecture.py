"""The rules of the house, checked on the source: who may import whom, how long a file is, who writes a transition.

Each rule is a function from sources to complaints, so that it can be shown a sinner as well as the project.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("robot_rl", "sim", "calibration", "ros_nodes", "launch")
MAX_LINES = 450

MAY_IMPORT = {
    "robot_rl": (),
    "sim": ("robot_rl", "calibration.result"),
    "calibration": ("robot_rl",),
    "ros_nodes": ("robot_rl", "calibration.result"),
    "launch": (),
}
"""Other rooms, or modules of them, that a room may import."""

EXCEPTIONS = {
    "ros_nodes/nodes/sim_cell.py": ("sim", "calibration.camera.board"),
    "ros_nodes/nodes/calibrate_node.py": ("calibration",),
}
"""What a file may import besides: the simulated arm is put behind the ROS topics here, and the guided calibration."""

ONLY_IN = {"rclpy": ("ros_nodes", "launch"), "mujoco": ("sim",), "dm_control": ("sim",)}
"""Libraries that only some rooms may import."""

PLUGIN_LOADERS = ("robot_rl/cli/main.py", "robot_rl/env/registry.py")
TRANSITION_KEYS = {"next_observation", "next_observations", "masks", "dones"}


class Source(NamedTuple):
    """A file below the root of the project, with forward slashes, and its text."""

    path: str
    text: str


def sources(*folders: str) -> list[Source]:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def imported_modules(source: Source) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported; `from a import b` counts as `a.b`."""
    package = source.path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(ast.parse(source.text, source.path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def is_within(module: str, parent: str) -> bool:
    return module == parent or module.startswith(f"{parent}.")


def import_complaints(source: Source) -> Iterator[str]:
    room = source.path.split("/")[0]
    allowed = (room, *MAY_IMPORT[room], *EXCEPTIONS.get(source.path, ()))
    for line, module in imported_modules(source):
        top = module.split(".")[0]
        if room == "launch" and top == "launch":
            continue  # the package of that name belongs to ROS 2
        if top in ROOMS and not any(is_within(module, parent) for parent in allowed):
            yield f"{source.path}:{line}: {room} may not import {module}"
        if top in ONLY_IN and room not in ONLY_IN[top]:
            yield f"{source.path}:{line}: only {' and '.join(ONLY_IN[top])} may import {top}"


def plugin_complaints(source: Source) -> Iterator[str]:
    """Loading by name goes around the import rule, so only two files of `robot_rl` may do it."""
    for node in ast.walk(ast.parse(source.text, source.path)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in ("entry_points", "import_module", "__import__") and source.path not in PLUGIN_LOADERS:
            yield f"{source.path}:{node.lineno}: {name} is for {' and '.join(PLUGIN_LOADERS)} only"


def transition_complaints(source: Source) -> Iterator[str]:
    """A dict with the keys of a transition, however it is written."""
    for node in ast.walk(ast.parse(source.text, source.path)):
        keys: set[object] = set()
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            keys = {keyword.arg for keyword in node.keywords}
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            keys = {node.slice.value} if isinstance(node.slice, ast.Constant) else set()
        if found := sorted(str(key) for key in keys & TRANSITION_KEYS):
            yield f"{source.path}:{node.lineno}: writes a transition ({', '.join(found)}); robot_rl/data does that"


def package_cycle(files: Iterable[Source]) -> list[str]:
    """Sub-packages (and top-level modules) of `robot_rl` that import each other in a circle; empty if none do."""
    arrows: dict[str, set[str]] = {}
    for source in files:
        node = source.path.removesuffix(".py").split("/")[1]
        targets = {module.split(".")[1] for _, module in imported_modules(source) if module.startswith("robot_rl.")}
        arrows.setdefault(node, set()).update(targets - {node, "__version__"})

    done: set[str] = set()

    def visit(node: str, trail: list[str]) -> list[str]:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node not in done:
            for target in sorted(arrows.get(node, ())):
                if cycle := visit(target, [*trail, node]):
                    return cycle
        done.add(node)
        return []

    return next((cycle for node in sorted(arrows) if (cycle := visit(node, []))), [])


def length_complaints(source: Source) -> Iterator[str]:
    lines = len(source.text.splitlines())
    if lines > MAX_LINES:
        yield f"{source.path}:{MAX_LINES + 1}: has {lines} lines, allowed are {MAX_LINES}; split it by concept"


def project_files() -> list[str]:
    """What is or will be tracked by git."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs a git checkout: {error}")
    return [name for name in listed if (ROOT / name).is_file()]


RULES = {
    "imports": (import_complaints, ROOMS),
    "plug-ins": (plugin_complaints, ("robot_rl",)),
    "one schema": (transition_complaints, ROOMS),
    "length": (length_complaints, (*ROOMS, "tests")),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule):
    complaints_of, folders = RULES[rule]
    files = [source for source in sources(*folders) if rule != "one schema" or "robot_rl/data/" not in source.path]
    complaints = [complaint for source in files for complaint in complaints_of(source)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_sub_packages_do_not_import_each_other_in_a_circle():
    cycle = package_cycle(sources("robot_rl"))
    assert not cycle, " -> ".join(cycle)


def test_launch_is_no_package():
    assert not (ROOT / "launch" / "__init__.py").exists(), "launch/__init__.py would hide the ROS 2 package `launch`"


def test_robot_rl_imports_without_ros_and_mujoco():
    modules = [source.path.removesuffix(".py").replace("/", ".") for source in sources("robot_rl")]
    names = [module.removesuffix(".__init__") for module in modules if not module.endswith("__main__")]
    blocked = [*ONLY_IN, *(room for room in ROOMS if room not in ("robot_rl", "launch"))]
    code = (
        "import importlib, sys\n"
        f"for name in {blocked!r}: sys.modules[name] = None\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_package_is_declared_and_every_declared_package_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = set(project["tool"]["setuptools"]["packages"])
    found = {
        Path(s.path).parent.as_posix().replace("/", ".") for s in sources(*ROOMS) if s.path.endswith("__init__.py")
    }
    assert declared == found


def test_no_path_of_somebodys_machine():
    pattern = re.compile(r"(?<![\w.])/(?:" + "|".join(("work", "root", "home")) + r")/")
    complaints = []
    for name in project_files():
        text = (ROOT / name).read_bytes().decode("utf-8", errors="replace")
        complaints += [f"{name}:{n}: {line}" for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    assert not complaints, "\n" + "\n".join(complaints)


SINNERS = [
    (import_complaints, "robot_rl/env/a.py", "import numpy\nimport mujoco", "robot_rl/env/a.py:2: only sim may import"),
    (import_complaints, "robot_rl/a.py", "def f():\n    from sim.arm import Arm", "robot_rl/a.py:2: robot_rl may not"),
    (import_complaints, "robot_rl/a.py", "from rclpy.node import Node", "only ros_nodes and launch may import rclpy"),
    (import_complaints, "sim/a.py", "import ros_nodes.qos", "sim may not import ros_nodes.qos"),
    (import_complaints, "sim/a.py", "from calibration import board", "sim may not import calibration.board"),
    (import_complaints, "calibration/a.py", "import sim", "calibration may not import sim"),
    (import_complaints, "ros_nodes/a.py", "import sim", "ros_nodes may not import sim"),
    (import_complaints, "launch/a.launch.py", "import robot_rl", "launch may not import robot_rl"),
    (
        plugin_complaints,
        "robot_rl/a.py",
        "import importlib\nimportlib.import_module('sim')",
        "robot_rl/a.py:2: import_mod",
    ),
    (
        plugin_complaints,
        "robot_rl/a.py",
        "from importlib.metadata import entry_points as e\nentry_points()",
        ":2: entry",
    ),
    (
        transition_complaints,
        "sim/a.py",
        "x = 1\nt = {'rewards': 0, 'dones': 1}",
        "sim/a.py:2: writes a transition (dones)",
    ),
    (transition_complaints, "sim/a.py", "t = dict(masks=1)", "(masks)"),
    (transition_complaints, "sim/a.py", "t['next_observations'] = 1", "(next_observations)"),
    (length_complaints, "sim/a.py", "x = 1\n" * 451, "sim/a.py:451: has 451 lines"),
]


@pytest.mark.parametrize(("complaints_of", "path", "text", "expected"), SINNERS)
def test_a_rule_catches_a_sinner(complaints_of, path, text, expected):
    (complaint,) = complaints_of(Source(path, text))
    assert expected in complaint


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ros_nodes/nodes/sim_cell.py", "from sim.arm import Arm\nimport rclpy"),
        ("sim/a.py", "from calibration.result import HandEye\nfrom robot_rl.errors import RenderError"),
        ("robot_rl/data/a.py", "from . import schema\nfrom ..errors import DataError"),
        ("launch/a.launch.py", "from launch import LaunchDescription"),
    ],
)
def test_the_import_rule_lets_pass_what_it_should(path, text):
    assert list(import_complaints(Source(path, text))) == []


def test_a_circle_is_found():
    files = [
        Source("robot_rl/env/a.py", "from robot_rl.learn import sac"),
        Source("robot_rl/learn/b.py", "import robot_rl.link.messages"),
        Source("robot_rl/link/c.py", "from robot_rl.env.a import x\nfrom robot_rl.errors import LinkError"),
        Source("robot_rl/errors.py", ""),
    ]
    assert package_cycle(files) == ["env", "learn", "link", "env"]
    assert package_cycle(files[1:]) == []
