"""Parameter files of ROS (YAML), checked against the parameters that our nodes have. Needs no ROS.

ROS ignores a section that fits no node and a parameter that no node declares. A misspelt limit would leave its default
in force, so both are errors here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.describe import key_names
from robot_rl.config.nodes import NODE_CONFIGS, REPLACED_PARAMETERS
from robot_rl.config.yaml_file import read_yaml
from robot_rl.errors import ConfigError, UnknownNameError

PARAMETERS = "ros__parameters"
EVERY_NODE = ("use_sim_time", "start_type_description_service", "base_frame", "tcp_frame", "frame_prefix")
"""Parameters that ROS and `RobotNode` give to every node."""
OPEN = "robot_node"
"""This node has the parameters of its driver as well, so it checks its own."""


@dataclass(frozen=True)
class ParameterSection:
    """Parameters for the nodes that fit a pattern.

    Attributes:
        path: The file.
        pattern: Full name of a node, in which `*` stands for one part and `**` for any number of them.
        parameters: Values by name; names of nested parameters are dotted.
    """

    path: Path
    pattern: str
    parameters: Mapping[str, Any]

    @property
    def node(self) -> str | None:
        """Name of the node without its namespace; None if the pattern leaves it open."""
        name = self.pattern.rpartition("/")[2]
        return None if "*" in name else name

    def fits(self, full_name: str) -> bool:
        """Whether it counts for a node, e.g. `/cell/safety_node`."""
        parts = (
            "(?:/[^/]+)*" if part == "**" else "/" + re.escape(part).replace(r"\*", "[^/]+")
            for part in self.pattern.strip("/").split("/")
        )
        return re.fullmatch("".join(parts), full_name) is not None


def read_sections(path: Path) -> list[ParameterSection]:
    """Return the sections of a parameter file, in their order.

    Raises:
        ConfigError: if it cannot be read, or is no parameter file.
    """
    tree = read_yaml(path, "parameter file")
    if not isinstance(tree, dict):
        raise ConfigError(
            f"parameter file {path}: expected `/**/NODE: {{{PARAMETERS}: {{NAME: VALUE}}}}`, got {tree!r:.80}"
        )
    return list(_sections(path, tree, ""))


def check_names(sections: Sequence[ParameterSection], own_name: str | None = None) -> None:
    """Check that every section is for one of our nodes and names only parameters that it has.

    Args:
        sections: Of parameter files.
        own_name: Name of a node that was renamed; it checks its own parameters.

    Raises:
        ConfigError: with a line for each node or parameter that does not exist, and the valid names.
    """
    parameters = {name: key_names(config) for name, config in NODE_CONFIGS.items()}
    everywhere = {key for keys in parameters.values() for key in keys}
    problems = []
    for section in sections:
        if section.node == own_name and own_name is not None:
            continue
        if section.node is not None and section.node not in parameters:
            problems.append(f"{section.path}: {UnknownNameError('node', section.node, parameters)}")
            continue
        if section.node == OPEN:
            continue
        what = f"parameter of {section.node}" if section.node else f"parameter for all nodes ({section.pattern})"
        valid = [*(parameters[section.node] if section.node else everywhere), *EVERY_NODE]
        replaced = REPLACED_PARAMETERS.get(NODE_CONFIGS[section.node], {}) if section.node else {}
        for name in (name for name in section.parameters if name not in valid):
            unknown = UnknownNameError(what, name, valid)
            cure = f"{name}: no {what} any more; set {replaced[name]} instead" if name in replaced else unknown
            problems.append(f"{section.path}: {cure}")
    if problems:
        raise ConfigError("\n".join(problems))


def check_namespace(sections: Sequence[ParameterSection], full_name: str) -> None:
    """Check that sections for a node fit its namespace as well.

    Raises:
        ConfigError: if there are sections for a node of this name, but none of them counts for it.
    """
    name = full_name.rpartition("/")[2]
    meant = [section for section in sections if section.node == name]
    if meant and not any(section.fits(full_name) for section in meant):
        patterns = ", ".join(section.pattern for section in meant)
        raise ConfigError(
            f"{meant[0].path}: section {patterns} does not count for {full_name}, the defaults would; write /**/{name}"
        )


def parameter_files(argv: Sequence[str]) -> list[Path]:
    """Return the parameter files that the arguments of a node name."""
    return [Path(value) for flag, value in itertools.pairwise(argv) if flag == "--params-file"]


def _sections(path: Path, tree: Mapping[Any, Any], pattern: str) -> Iterator[ParameterSection]:
    for key, value in tree.items():
        if key == PARAMETERS and pattern and isinstance(value, dict | None):
            yield ParameterSection(path, pattern, dict(_flat(value or {}, "")))
        elif isinstance(value, dict) and key != PARAMETERS:
            yield from _sections(path, value, f"{pattern}/{str(key).strip('/')}")
        else:
            place = f"in {pattern}" if pattern else "at the top"
            raise ConfigError(
                f"parameter file {path}: {key!r} {place} is neither a node nor {PARAMETERS}; "
                f"expected `/**/NODE: {{{PARAMETERS}: {{NAME: VALUE}}}}`"
            )


def _flat(tree: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
