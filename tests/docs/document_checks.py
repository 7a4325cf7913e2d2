"""Whether what a document says is so: commands, settings and values, files, anchors, names in the code.

`problems_of` holds a document against the program itself: the parser of `robot-rl`, the configuration, the Makefile,
the launch files, the nodes' parameters, the readers of every YAML file that a user writes.
"""

import argparse
import ast
import contextlib
import functools
import importlib
import io
import itertools
import re
import tempfile
import tomllib
from pathlib import Path

import yaml
from document_code import anchors, blocks, commands, lines, links, read_document, spans
from documents import ROOT

import robot_rl.config.nodes as node_configs
from robot_rl.arm.driver import find_driver
from robot_rl.arm.robot_connection import read_connection
from robot_rl.cell.robot_file import SECTIONS, read_robot_file
from robot_rl.cell.task_file import load_task
from robot_rl.cli.main import command_line
from robot_rl.config.components import TrainConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.labelling import LabelConfig
from robot_rl.config.load import in_other_world, load_component, load_config
from robot_rl.data.formats.rosbag_mapping import load_mapping
from robot_rl.env.registry import environment_names, family_names, task_names
from robot_rl.errors import RobotRLError
from robot_rl.teleop.leader.gello import GelloConfig
from robot_rl.teleop.mapping import load_map
from sim.arm.model_file import ArmFile

OURS = ("robot_rl", "sim", "calibration", "ros_nodes")
KEYS = {described.key for config in (TrainConfig, LabelConfig) for described in list_keys(config)}
EXAMPLES = {"left_arm", "reach_ur", "wrist_on_tool_before", "newest_success_rate", "robot_rl.sim"}
"""Names that a user gives, that are put together, or that are said not to exist."""
GROUPS = {group for key in KEYS for group in itertools.accumulate(key.split(".")[:-1], "{}.{}".format)}


def problems_of(text: str, path: Path = ROOT / "README.md", *, names: bool = True) -> list[str]:
    """What a document says that is not so.

    Args:
        text: The document, in Markdown.
        path: Where it is, for relative links.
        names: Whether files, modules and settings in running text have to exist.
    """
    found = [f"{where}: {problem}" for where, problem in _commands(text)]
    found += [f"{link} leads nowhere" for link in _broken_links(text, path)]
    if names:
        found += [f"`{name}` is not there" for name in (*_missing_settings(text), *_missing_names(text))]
    return found + list(_problems_of_blocks(text))


# ------------------------------------------------------------------- commands


@functools.cache
def _parser():
    return command_line()


def _commands(text):
    """What is wrong with the commands, each with its line."""
    own = set(re.findall(r"^(\w+) = ", "".join(b.text for b in blocks(text) if b.language == "toml"), re.MULTILINE))
    own |= set(re.findall(r"register\(\"([\w-]+)", text))
    known = {*task_names(), *environment_names(), *own}
    for line, whole in [*((line, True) for line in lines(text)), *((span, False) for span in spans(text))]:
        for words in commands(line):
            check = {"robot-rl": _robot_rl, "make": _make, "ros2": _ros2, "python": _python, "pip": _pip}.get(
                words[0].rpartition("/")[2]
            )
            if check is not None and (problem := check(words[1:], whole, known)):
                yield line.strip(), problem


def _robot_rl(words, whole, names):
    shown = ["1" if re.fullmatch("[SN]|STEPS?", word) else word for word in words]
    words = list(itertools.takewhile(lambda word: not re.search(r"\.\.\.|^\[|…", word), shown))
    whole = whole and len(words) == len(shown)
    if not words or words[0].isupper() or any("|" in word for word in words):
        return None  # `robot-rl`, `robot-rl COMMAND`, or a choice of commands
    said = io.StringIO()
    arguments, unknown = argparse.Namespace(), []
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            arguments, unknown = _parser().parse_known_args(words)
    except SystemExit as error:
        reason = said.getvalue().strip().rpartition("error: ")[2]
        own = re.search(r"invalid choice: '([\w-]+)'", reason)
        if own and (own[1] in names or own[1].isupper()):
            return None  # a name that the page itself registers, or a placeholder
        if error.code == 0 or (not whole and re.search("required|expected .*argument", reason)):
            return _flags(words)
        return reason
    if unknown:
        return f"unknown argument {' '.join(unknown)}"
    task = getattr(arguments, "task", None)
    if isinstance(task, str) and getattr(arguments, "robot", None) is None and words[0] in ("train", "demo", "eval"):
        family = task.partition(":")[0]
        if not (task in names or family in family_names() or task.isupper() or task.startswith("my_") or ":" in task):
            return f"no task {task}"
    return _values(words, getattr(arguments, "set", None) or [])


def _flags(words):
    """Flags of a command that is not shown whole."""
    parser, rest = _parser(), list(words)
    while rest and rest[0] in parser.commands:
        parser = parser.commands[rest.pop(0)]
    known = {option for action in parser.arguments() for option in action.option_strings}
    wrong = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]
    return f"unknown argument {' '.join(wrong)}" if wrong else None


def _values(words, overrides):
    """Whether the program takes the settings of a command."""
    overrides = [entry for entry in overrides if not re.match(r"[A-Z]+(\.[A-Z]+)?=", entry)]  # KEY=VALUE
    try:
        if words[0] == "train":
            load_config(None, overrides)
        elif words[0] == "eval":
            in_other_world(load_config(), None, overrides)
        elif words[0] == "label":
            load_component(LabelConfig, None, overrides)
        elif unknown := {entry.partition("=")[0] for entry in overrides} - KEYS:
            return f"no setting {', '.join(unknown)}"
    except RobotRLError as error:
        return str(error)
    return None


def _make(words, whole, own):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wrong = [word for word in words if re.fullmatch(r"[a-z-]+", word) and word not in targets]
    return f"no target {', '.join(wrong)}" if wrong and (whole or len(words) == 1) else None


def _pip(words, whole, own):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {
        name
        for word in words
        for found in re.findall(r"(?:robot_rl|\.whl|^\.)\[([\w,-]+)\]", word)
        for name in found.split(",")
        if not name.isupper()
    }
    return f"no extra {', '.join(named - set(extras))}" if named - set(extras) else None


def _python(words, whole, own):
    if words[:1] == ["-m"] and len(words) > 1:
        script = ROOT.joinpath(*words[1].split(".")).with_suffix(".py") if words[1].startswith(OURS) else None
    else:
        script = ROOT / words[0] if words and re.match(r"[\w/]+\.py$", words[0]) and "/" in words[0] else None
    if script is None:
        return None
    if not script.is_file():
        return f"no {script.relative_to(ROOT)}"
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    missing = {flag for flag in flags if f'"{flag}"' not in script.read_text(encoding="utf-8")}
    return f"no {', '.join(sorted(missing))} in {script.relative_to(ROOT)}" if missing else None


def _ros2(words, whole, own):
    if words[:2] == ["run", "robot_rl"] and len(words) > 2:
        if words[2] not in {path.name for path in (ROOT / "scripts" / "nodes").iterdir()}:
            return f"no node {words[2]}"
        given = dict(word.split(":=", 1) for flag, word in itertools.pairwise(words) if flag == "-p")
        known = _parameters(words[2], given.get("driver"))
        unknown = set(given) - known if known else set()
        return f"no parameter {', '.join(sorted(unknown))} of {words[2]}" if unknown else None
    if words[:1] == ["launch"]:
        file = next((word.rpartition("/")[2] for word in words if word.endswith(".launch.py")), None)
        if file is not None and not (ROOT / "launch" / file).is_file():
            return f"no {file}"
        arguments = yaml.safe_load((ROOT / "launch/config/bringups.yaml").read_text(encoding="utf-8"))["arguments"]
        text = (ROOT / "launch" / file).read_text(encoding="utf-8") if file is not None else ""
        arguments |= dict.fromkeys(re.findall(r'DeclareLaunchArgument\("(\w+)"', text))
        unknown = {word.partition(":=")[0] for word in words if ":=" in word} - set(arguments)
        return f"no launch argument {', '.join(sorted(unknown))}" if unknown else None
    return None


def _parameters(node, driver):
    """The parameters of a node; none if its driver is not installed here."""
    name = "".join(part.capitalize() for part in node.split("_")) + "Config"
    configs = [getattr(node_configs, name)] if hasattr(node_configs, name) else []
    if node == "robot_node":
        try:
            configs.append(find_driver(driver or "crisp").Config)
        except RobotRLError:  # no ROS here, or a driver of the page's own
            return set()
    return {*_fields(configs), "use_sim_time"}


def _fields(configs):
    return {key.key for config in configs for key in list_keys(config)}


# ------------------------------------------------------- settings, files, names


def _missing_settings(text):
    """Spans like `sac.discount` whose first word is a section of the configuration."""
    for span in spans(text):
        key = span.partition("=")[0]
        is_file = re.search(r"\.(py|yaml|jsonl?|md|png|pt|csv|mp4|log)$", key)
        if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", key) and key.split(".")[0] in GROUPS and not is_file:
            yield from {key} - KEYS - GROUPS


def _broken_links(text, path):
    for link in links(text):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        place = path.parent / target if target else path
        if not place.exists() or (
            anchor and place.suffix == ".md" and anchor not in anchors(text if not target else read_document(place))
        ):
            yield link


def _missing_names(text):
    """Files of the checkout, tests, modules, flags and identifiers that a document names."""
    shown = "".join(block.text for block in blocks(text))
    for span in spans(text):
        if match := re.fullmatch(r"(tests/[\w/]+\.py)::(\w+)(?:::(\w+))?", span):
            file = ROOT / match[1]
            names = [name for name in match.groups()[1:] if name]
            if not file.is_file() or not all(re.search(rf"(def|class) {n}\b", file.read_text("utf-8")) for n in names):
                yield span
        elif re.fullmatch(
            rf"({'|'.join((*OURS, 'tests', 'benchmarks', 'scripts', 'launch', 'docs'))})(/[\w.-]+)+/?", span
        ):
            if not (ROOT / span).exists():
                yield span
        elif re.fullmatch(rf"({'|'.join(OURS)})(\.\w+)+", span):
            if span not in EXAMPLES and not _found(span):
                yield span
        elif span.startswith("--"):
            if (flag := re.match(r"--[\w-]*", span)[0]) not in _flags_of_all():
                yield flag
        else:
            words = re.findall(r"\w*[^\W_]_[^\W_]\w*", span.partition("=")[0])  # what follows is a value of the user's
            yield from (word for word in words if word not in _words() | EXAMPLES and word not in shown)


@functools.cache
def _flags_of_all():
    """The flags of all commands, and those in the source of scripts and nodes."""
    parsers, found = [_parser()], set()
    while parsers:
        parser = parsers.pop()
        parsers += parser.commands.values()
        found |= {option for action in parser.arguments() for option in action.option_strings}
    return found | set(re.findall(r"--[a-z][\w-]*", _source()))


@functools.cache
def _words():
    names = {path.stem for place in (*OURS, "tests", "benchmarks") for path in (ROOT / place).rglob("*.*")}
    return names | set(re.findall(r"\w+", _source()))


@functools.cache
def _source():
    """The text of the program: what is not documentation."""
    places = [*OURS, "tests", "benchmarks", "scripts", "launch"]
    files = [path for place in places for path in (ROOT / place).rglob("*")]
    files = [path for path in files if path.name != "test_documents.py"]  # it plants what is not so
    files += [ROOT / name for name in ("pyproject.toml", "package.xml", "setup.py", "Makefile")]
    kinds = (".py", ".yaml", ".js", ".html", ".css", ".toml", ".xml", "")
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file() and path.suffix in kinds)


@functools.cache
def _entry_point_groups():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "robot_rl").rglob("*.py"))
    used = {name for text in texts for name in re.findall(r'"(robot_rl\.\w+)"', text)}
    return used | set(project["entry-points"])


def _found(dotted):
    """Whether a module, or a name in one, or a group of entry points, is there."""
    if dotted in _entry_point_groups():
        return True
    module, names = dotted, []
    while "." in module and not _is_module(module):
        module, _, name = module.rpartition(".")
        names.insert(0, name)
    if not names:
        return True
    place = importlib.import_module(module)
    for name in names:
        if not hasattr(place, name):
            return False
        place = getattr(place, name)
    return True


def _is_module(name):
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


# -------------------------------------------------------------------- blocks


def _problems_of_blocks(text):
    for block in blocks(text):
        if block.language == "python":
            yield from _python_block(block.text)
        elif block.language == "toml":
            groups = tomllib.loads(block.text).get("project", {}).get("entry-points", {})
            yield from (f"no entry points {group}" for group in groups if group not in _entry_point_groups())
        elif block.language == "yaml" and (problem := _yaml_block(block.text)):
            yield problem


def _python_block(text):
    try:
        tree = ast.parse(re.sub(r"^(\s*)[!%].*", r"\1pass", text, flags=re.MULTILINE))
    except SyntaxError as error:
        yield f"{error}: {error.text}"
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] in OURS]
        else:
            continue
        yield from (f"no {name}" for name in names if not _found(name))


def _yaml_block(text):
    """Whether one of the files that a user writes may hold these lines."""
    tree = yaml.safe_load(text)
    keys = set(tree)
    if keys <= set(SECTIONS):
        return _robot_yaml(text, tree)
    readers = [lambda file: load_config(file), load_map, load_mapping, lambda file: load_task(file, "task")]
    readers += [lambda file: load_component(GelloConfig, file), lambda file: load_component(ArmFile, file)]
    reasons = []
    for reader in readers:
        try:
            with _written(text) as file:
                reader(file)
        except (RobotRLError, ValueError) as error:
            reasons.append(str(error).splitlines()[0])
        else:
            return None
    return f"{sorted(keys)}: no file of ours holds this: {reasons}"


def _robot_yaml(text, tree):
    """What is wrong with a robot file, or with a part of one."""
    with _written(text) as file:
        try:
            if {"arm", "limits", "task"} <= set(tree) and isinstance(tree["task"], dict):
                read_robot_file(file, "task")
            elif "arm" in tree:
                read_connection(file)
        except RobotRLError as error:
            return str(error).replace(str(file), "robot file")
    return None


@contextlib.contextmanager
def _written(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.yaml"
        file.write_text(text, encoding="utf-8")
        yield file
