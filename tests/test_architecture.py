"""The rules of the house, checked on the source: who may import whom, how long a file is, who writes a transition.

Each rule is a function from sources to complaints, so that it can be shown a sinner as well as the project.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from import_graph import Source, file_graph, find_cycle, folder_graph, imported_modules, role_graph
from setuptools import find_packages

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("robot_rl", "sim", "calibration", "ros_nodes", "launch")
PACKAGES = ("robot_rl", "sim", "calibration", "ros_nodes")
MAX_LINES = 450
MAX_ROOT_MODULES = 8
MAX_FILES = 16
"""In a folder; `__init__.py` is not counted."""
MAX_IMPORTS = 15
"""Of our modules, by one file."""
MAX_PRIVATE_READS = 19
"""Of `x._name` in tests, where `x` is neither `self` nor `cls`."""

MAY_IMPORT_MORE = ("robot_rl/cli/", "calibration/cli.py", "ros_nodes/bringup/cli.py")
"""A command puts everything together, so it may import more than `MAX_IMPORTS` modules."""

PYTHON_M = "robot_rl/__main__.py"
"""Python wants the module that `python -m robot_rl` runs at this place, so it may import the command line."""

SPEECH = re.compile(r"\b(say|says|said|saying|tell|tells|told|telling|ask|asks|asked|asking|word|words)\b", re.I)
MAX_SPEECH = 4
"""Lines in 1,000 with such a word: code returns, reports and requests; only people say, tell and ask."""

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

ONLY_IN = {"rclpy": ("ros_nodes", "launch"), "mujoco": ("sim",), "dm_control": ("sim", "robot_rl/adapters/guest.py")}
"""Libraries that only some rooms, or files, may import."""

PLUGIN_LOADERS = (
    "robot_rl/cli/main.py",
    "robot_rl/env/registry.py",
    "robot_rl/adapters/guest.py",
    "robot_rl/arm/lerobot/server.py",
)
"""The last two make environments, and robots, of others by name, in interpreters that have no `robot_rl`."""
TRANSITION_KEYS = {"next_observation", "next_observations", "masks", "dones"}


def sources(*folders: str) -> list[Source]:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


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
        if top in ONLY_IN and not {room, source.path} & {*ONLY_IN[top]}:
            yield f"{source.path}:{line}: only {' and '.join(ONLY_IN[top])} may import {top}"


def plugin_complaints(source: Source) -> Iterator[str]:
    """Loading by name goes around the import rule, so only few files of `robot_rl` may do it."""
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


def length_complaints(source: Source) -> Iterator[str]:
    lines = len(source.text.splitlines())
    if lines > MAX_LINES:
        yield f"{source.path}:{MAX_LINES + 1}: has {lines} lines, allowed are {MAX_LINES}; split it by concept"


def root_complaints(files: Iterable[Source]) -> Iterator[str]:
    """The root is for what everybody imports, so it is small and imports no sub-package itself."""
    files = list(files)
    root = [s for s in files if s.folder == "robot_rl" and not s.path.endswith(("__init__.py", PYTHON_M))]
    if len(root) > MAX_ROOT_MODULES:
        yield f"robot_rl: has {len(root)} modules on its root, allowed are {MAX_ROOT_MODULES}"
    graph, folders = file_graph(files), {source.module: source.folder for source in files}
    for source in files:
        if source.folder == "robot_rl" and source.path != PYTHON_M:
            for target in sorted(graph[source.module]):
                if folders[target] != "robot_rl":
                    yield f"{source.path}: is on the root and may not import {target}"


def folder_complaints(files: Iterable[Source]) -> Iterator[str]:
    counted = Counter(source.folder for source in files if not source.path.endswith("__init__.py"))
    for folder, number in sorted(counted.items()):
        if number > MAX_FILES:
            yield f"{folder.replace('.', '/')}: has {number} files, allowed are {MAX_FILES}; split it by role"


def cycle_complaints(files: Iterable[Source]) -> Iterator[str]:
    files = [source for source in files if source.path != PYTHON_M]
    for kind, graph in (("files", file_graph), ("folders", folder_graph), ("roles", role_graph)):
        if cycle := find_cycle(graph(files)):
            yield f"{kind} import each other in a circle: {' -> '.join(cycle)}"


def fan_out_complaints(files: Iterable[Source]) -> Iterator[str]:
    files = list(files)
    graph = file_graph(files)
    for source in files:
        number = len(graph[source.module])
        if number > MAX_IMPORTS and not source.path.startswith(MAY_IMPORT_MORE) and source.path != PYTHON_M:
            yield f"{source.path}: imports {number} of our modules, allowed are {MAX_IMPORTS}"


def class_name_complaints(files: Iterable[Source]) -> Iterator[str]:
    """A name has one meaning, so that a search for it finds one class."""
    places = defaultdict(list)
    for source in files:
        for node in ast.walk(ast.parse(source.text, source.path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{source.path}:{node.lineno}")
    yield from (f"{' and '.join(where)}: class {name}" for name, where in sorted(places.items()) if len(where) > 1)


def speech_complaints(files: Iterable[Source]) -> Iterator[str]:
    lines = [(s.path, n, line) for s in files for n, line in enumerate(s.text.splitlines(), 1)]
    found = [f"{path}:{n}: {line.strip()}" for path, n, line in lines if SPEECH.search(line)]
    if len(found) > len(lines) * MAX_SPEECH / 1000:
        yield "\n".join([f"{len(found)} of {len(lines)} lines say, tell, ask or have a word: rename them", *found])


def private_read_complaints(files: Iterable[Source]) -> Iterator[str]:
    """Tests use what users use. Named tuples have public members with an underscore (`_replace`)."""
    of_named_tuples = {"_replace", "_make", "_asdict", "_fields"}
    found = []
    for source in files:
        for node in ast.walk(ast.parse(source.text, source.path)):
            name, owner = (node.attr, node.value) if isinstance(node, ast.Attribute) else ("", None)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and len(node.args) > 1:
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                given = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
                name = str(given) if called in ("getattr", "setattr") else name
            own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            if re.match(r"_[a-z]", name) and name not in of_named_tuples and not own:
                found.append(f"{source.path}:{node.lineno}: {ast.unparse(node)}")
    if len(found) > MAX_PRIVATE_READS:
        yield "\n".join([f"{len(found)} private members are used, allowed are {MAX_PRIVATE_READS}", *found])


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


TREE_RULES = {
    "a small root that imports nobody": (root_complaints, ("robot_rl",)),
    "small folders": (folder_complaints, (*ROOMS, "tests")),
    "no circles": (cycle_complaints, PACKAGES),
    "few imports": (fan_out_complaints, PACKAGES),
    "one class a name": (class_name_complaints, PACKAGES),
    "the words of the field": (speech_complaints, PACKAGES),
    "public members in tests": (private_read_complaints, ("tests",)),
}


@pytest.mark.parametrize("rule", TREE_RULES)
def test_rule_of_the_tree(rule):
    complaints_of, folders = TREE_RULES[rule]
    complaints = list(complaints_of(sources(*folders)))
    assert not complaints, "\n" + "\n".join(complaints)


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


def test_every_package_is_installed_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["setuptools"]["packages"]["find"]
    assert settings["namespaces"] is False
    installed = set(find_packages(str(ROOT), include=settings["include"]))
    found = {
        Path(s.path).parent.as_posix().replace("/", ".") for s in sources(*ROOMS) if s.path.endswith("__init__.py")
    }
    assert installed == found


def test_no_path_of_somebodys_machine():
    folders = ("work", "root", "home")
    pattern = re.compile(r"(?<![\w.])/(?:" + "|".join(folders) + r")/")
    complaints = []
    for name in project_files():
        text = (ROOT / name).read_bytes().decode("utf-8", errors="replace")
        if not any(f"/{folder}/" in text for folder in folders):
            continue  # a hundred times as fast as the pattern
        complaints += [f"{name}:{n}: {line}" for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    assert not complaints, "\n" + "\n".join(complaints)


SINNERS = [
    (import_complaints, "robot_rl/env/a.py", "import numpy\nimport mujoco", "robot_rl/env/a.py:2: only sim may import"),
    (
        import_complaints,
        "robot_rl/a.py",
        "def f():\n    from sim.controller import Arm",
        "robot_rl/a.py:2: robot_rl may not",
    ),
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
        ("ros_nodes/nodes/sim_cell.py", "from sim.controller import Arm\nimport rclpy"),
        ("sim/a.py", "from calibration.result import HandEye\nfrom robot_rl.errors import RenderError"),
        ("robot_rl/data/a.py", "from . import schema\nfrom ..errors import DataError"),
        ("launch/a.launch.py", "from launch import LaunchDescription"),
    ],
)
def test_the_import_rule_lets_pass_what_it_should(path, text):
    assert list(import_complaints(Source(path, text))) == []


TREE_SINNERS = {
    "a large root": (
        root_complaints,
        [Source(f"robot_rl/m{n}.py", "") for n in range(9)],
        ["robot_rl: has 9 modules on its root"],
    ),
    "a root that imports": (
        root_complaints,
        [Source("robot_rl/a.py", "def f():\n    from robot_rl.env import b"), Source("robot_rl/env/b.py", "")],
        ["robot_rl/a.py: is on the root and may not import robot_rl.env.b"],
    ),
    "a large folder": (
        folder_complaints,
        [Source(f"sim/tasks/m{n}.py", "") for n in range(17)],
        ["sim/tasks: has 17 files"],
    ),
    "files in a circle": (
        cycle_complaints,
        [Source("sim/a.py", "from sim.b import x"), Source("sim/b.py", "import sim.a")],
        ["files import each other in a circle: sim.a -> sim.b -> sim.a"],
    ),
    "folders in a circle": (
        cycle_complaints,
        [
            Source("robot_rl/env/a.py", "from robot_rl.learn import b"),
            Source("robot_rl/learn/b.py", ""),
            Source("robot_rl/learn/c.py", "from robot_rl.env.d import x"),
            Source("robot_rl/env/d.py", ""),
        ],
        ["folders import each other in a circle: robot_rl.env -> robot_rl.learn -> robot_rl.env", "roles"],
    ),
    "roles in a circle": (
        cycle_complaints,
        [
            Source("robot_rl/data/store/a.py", "from robot_rl.env import b"),
            Source("robot_rl/env/b.py", "from robot_rl.data.schema import Step"),
            Source("robot_rl/data/schema.py", ""),
        ],
        ["roles import each other in a circle: robot_rl.data -> robot_rl.env -> robot_rl.data"],
    ),
    "many imports": (
        fan_out_complaints,
        [Source("sim/a.py", "from sim import " + ", ".join(f"m{n}" for n in range(16)))]
        + [Source(f"sim/m{n}.py", "") for n in range(16)],
        ["sim/a.py: imports 16 of our modules"],
    ),
    "a class name twice": (
        class_name_complaints,
        [Source("sim/a.py", "class Frame: ..."), Source("robot_rl/b.py", "\nclass Frame: ...")],
        ["sim/a.py:1 and robot_rl/b.py:2: class Frame"],
    ),
    "too much talk": (
        speech_complaints,
        [Source("sim/a.py", "x = 1\n" * 995 + "# It says so, if asked.\n" * 5)],
        ["5 of 1000 lines"],
    ),
    "a curious test": (
        private_read_complaints,
        [Source("tests/a.py", "a._b\nself._c\nd._replace(x=1)\nsetattr(e, '_f', 1)\n" * 10)],
        ["20 private members are used"],
    ),
}


@pytest.mark.parametrize("sinner", TREE_SINNERS)
def test_a_rule_of_the_tree_catches_a_sinner(sinner):
    complaints_of, files, expected = TREE_SINNERS[sinner]
    complaints = list(complaints_of(files))
    assert len(complaints) == len(expected)
    assert all(complaint.startswith(begin) for complaint, begin in zip(complaints, expected, strict=True)), complaints


def test_the_rules_of_the_tree_let_pass_what_they_should():
    files = [
        Source("robot_rl/__init__.py", ""),
        Source("robot_rl/__main__.py", "from robot_rl.cli.main import main"),
        Source("robot_rl/errors.py", "class E: ..."),
        Source("robot_rl/cli/main.py", "import robot_rl.env.a\nfrom robot_rl.errors import E"),
        Source("robot_rl/env/a.py", "from .b import x\nfrom ..errors import E"),
        Source("robot_rl/env/b.py", "# words of the field\n" + "x = 1\n" * 1000),
    ]
    for complaints_of, _ in TREE_RULES.values():
        assert list(complaints_of(files)) == []


def test_no_two_test_files_have_one_name():
    """Pytest imports them by their name alone, and collects the first of two."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
