"""The nodes of a bringup with all that they are given, for `robot-rl up` and for `ros2 launch`; needs no ROS.

Beside the table it knows a simulated task: its arms and their keep-out, which the safety node, as it knows of no
simulation, reads from a file, and steps that are longer than what this node and the arm let through by default. For
`ros2 launch` it is a program: `plan FOLDER` reads arguments of a launch file as JSON, all of them text, and prints the
nodes as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.config.yaml_file import dump_yaml
from robot_rl.errors import ConfigError, RobotRLError
from ros_nodes.bringup.program import answer
from ros_nodes.bringup.table import NodeSpec, from_text, node_specs, read_table, used_arguments

if TYPE_CHECKING:
    from robot_rl.env.task import TaskSpec

GUARD, SIMULATED_ARMS = "safety", ("sim", "practice_sim")
"""Nodes, in the table, that have to know the simulated task: its arms and keep-out, and how long its steps are."""
PRACTICE = "practice"
"""Bringup in which a simulated task and its reverse take turns."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LATCH = "latched_stop"
"""File of a latched stop: a node that dies and is started again by the bringup holds it still."""


def plan(bringup: str, given: Mapping[str, Any], folder: Path, *, flag: str = "") -> list[NodeSpec]:
    """Return the nodes of a bringup.

    Args:
        bringup: Its name.
        given: Its arguments; those left out have their default.
        folder: For files that nodes read; it has to stay until they have ended.
        flag: Written before the name of an argument, in messages.

    Raises:
        ConfigError: if a file that is given is not there, the namespace is none of ROS, or the bringup makes no use of
            an argument.
        UnknownNameError: if there is no such bringup, argument or node.
    """
    _check_namespace(str(given.get("namespace") or ""), flag)
    if (params := given.get("params")) and not Path(params).is_file():
        raise ConfigError(f"{flag}params {params}: there is no such file; launch/config/robot.yaml is an example")
    if (file := given.get("task_file")) and not Path(file).expanduser().is_file():
        raise ConfigError(f"{flag}task_file {file}: there is no such file; launch/config/task.yaml is an example")
    if bringup == PRACTICE:
        _check_practice(given, flag)
    _check_used(bringup, given, flag)
    latch = folder / LATCH
    latch.unlink(missing_ok=True)
    specs = _planned(bringup, given, folder)
    return [
        replace(spec, parameters={**spec.parameters, "latch_file": str(latch)}) if spec.name == GUARD else spec
        for spec in specs
    ]


def _check_namespace(namespace: str, flag: str) -> None:
    """Check a namespace: ROS ends a node that has another one, and names it in none of its lines.

    Raises:
        ConfigError: naming the part that is not valid.
    """
    for part in namespace.strip("/").split("/") if namespace.strip("/") else ():
        if not _NAME.fullmatch(part) or "__" in part:
            raise ConfigError(
                f"{flag}namespace {namespace}: {part!r} is no name of ROS; letters, digits and single _ are valid, not "
                "with a digit first, and / between names, e.g. cell/left"
            )


def _check_used(bringup: str, given: Mapping[str, Any], flag: str) -> None:
    """Check that the bringup makes use of all arguments that differ from their defaults.

    Raises:
        ConfigError: naming one of which it makes none, and the bringups that do.
    """
    table = read_table()
    if bringup not in table["bringups"]:
        return  # which is said with all names that are valid
    used = used_arguments(table, bringup)
    for name, value in given.items():
        if name in table["arguments"] and name not in used and value != table["arguments"][name]["default"]:
            others = [other for other in table["bringups"] if name in used_arguments(table, other)]
            raise ConfigError(f"{flag}{name}: {bringup} makes no use of it, only {', '.join(others)}; leave it out")


def _check_practice(given: Mapping[str, Any], flag: str) -> None:
    """Check the arguments of a practice, before any node is started.

    Raises:
        ConfigError: naming the one that does not go with it.
    """
    if given.get("console"):
        raise ConfigError(
            f"{flag}console: over topics nobody takes part in a practice yet; leave it out, or practise in one "
            "process: robot-rl practice TASK --console"
        )
    if given.get("fleet"):
        raise ConfigError(f"{flag}fleet: a fleet learns one task, a practice two in turn; leave it out")
    task = _simulated_task(_task_name(given))
    if task is not None and not task.reverse:
        raise ConfigError(
            f"{flag}task {task.name}: it names no reverse, so it cannot be practised over topics; choose one that "
            "does, e.g. relocate_forward"
        )


def _task_name(given: Mapping[str, Any]) -> str:
    return str(given.get("task") or read_table()["arguments"]["task"]["default"])


def _planned(bringup: str, given: Mapping[str, Any], folder: Path) -> list[NodeSpec]:
    """Return the nodes of a bringup with what they have to know of a simulated task."""
    table = read_table()
    specs = node_specs(table, bringup, given)
    if given.get("task_file") or all(spec.name != GUARD for spec in specs):
        return specs
    task = _simulated_task(_task_name(given))
    if task is None:
        return specs
    if task.arms:
        specs = node_specs(table, bringup, {**given, "task_file": _write_task(task, folder)})
    return specs if given.get("params") else [_with_step_limits(spec, task) for spec in specs]


def _simulated_task(name: str) -> TaskSpec | None:
    """Return the facts of a simulated task; None where it is not installed or known.

    A machine that runs other nodes of the bringup may have no simulation; the node that simulates says what is wrong.
    """
    from robot_rl.env.registry import make_workcell  # bringups of a real arm need no simulation

    try:
        cell = make_workcell(name)
    except RobotRLError:
        return None
    cell.close()
    return cell.task.spec


def _write_task(task: TaskSpec, folder: Path) -> str:
    """Write the facts of a task of several arms."""
    from robot_rl.cell.task_file import task_content

    file = folder / "task.yaml"
    file.write_text(dump_yaml(task_content(task)), encoding="utf-8")
    return str(file)


def _with_step_limits(spec: NodeSpec, task: TaskSpec) -> NodeSpec:
    """Return a node with limits that let the task's longest steps through."""
    from robot_rl.cell.step_limits import step_limits

    widened = step_limits(task)
    more = {GUARD: widened.limits, **dict.fromkeys(SIMULATED_ARMS, widened.cap)}.get(spec.name)
    return replace(spec, parameters={**spec.parameters, **more}) if more else spec


def from_texts(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of the table among those of a launch file, each of the type of its default.

    Raises:
        ConfigError: if one is not of that type.
    """
    arguments = read_table()["arguments"]
    return {n: from_text(n, texts[n], entry["default"]) for n, entry in arguments.items() if n in texts}


def main() -> int:
    """Do it for `ros2 launch`."""
    texts, folder = json.load(sys.stdin), Path(sys.argv[1])

    def make() -> list[dict[str, Any]]:
        specs = plan(texts["bringup"], from_texts(texts), folder)
        return [asdict(spec) | {"ros_arguments": spec.ros_arguments()} for spec in specs]

    return answer(make)


if __name__ == "__main__":
    sys.exit(main())
