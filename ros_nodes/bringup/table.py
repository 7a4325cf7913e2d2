"""What is started together: the table in `launch/config/bringups.yaml`, read. Needs no ROS.

`launch/` reads the same file, so that `ros2 launch` and `robot-rl up` start the same nodes in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from robot_rl.config.yaml_file import parse_yaml
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.system.process import python_module

FASTDDS_PROFILE = "fastdds.xml"
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Seven times as fast where PyYAML has it: every `robot-rl` command reads the table, as `up` is one of them."""
EVERYWHERE = ("namespace", "params", "only", "without")
"""Arguments of every bringup."""
_PLACE = re.compile(r"\{(\w+)\}")
_KINDS = {int: "a whole number", bool: "true or false", list: "a list"}


@dataclass(frozen=True)
class NodeSpec:
    """A node to start.

    Attributes:
        name: In the table.
        executable: Module of this package, and name of the program.
        parameters: Its parameters; they count more than those in the file.
        params: Parameter file of ROS (YAML), or an empty text.
        respawn: Whether it is started again when it ends by itself.
        main: Whether everything ends with it.
    """

    name: str
    executable: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    params: str = ""
    respawn: bool = False
    main: bool = False

    def command(self, namespace: str, *, secured: bool = False) -> list[str]:
        """Return what to run: the same arguments as `ros2 launch` gives; `secured`: in an enclave (SROS2)."""
        command = [*python_module(f"ros_nodes.nodes.{self.executable}"), "--ros-args"]
        if namespace:
            command += ["-r", f"__ns:=/{namespace.strip('/')}"]
        if secured:
            command += ["--enclave", f"/{namespace.strip('/')}/{self.executable}".replace("//", "/")]
        return command + self.ros_arguments()

    def ros_arguments(self) -> list[str]:
        """Return what gives the node its parameters, after `--ros-args`."""
        given = ["--params-file", self.params] if self.params else []
        return given + [word for key, value in self.parameters.items() for word in ("-p", f"{key}:={_flow(value)}")]


def table_folder() -> Path:
    """Where the table lies: in a checkout, or where it was installed.

    Raises:
        ConfigError: if it is in neither place.
    """
    for parent in Path(__file__).parents[1:6]:
        for place in (parent / "launch" / "config", parent / "share/robot_rl/launch/config"):
            if (place / "bringups.yaml").is_file():
                return place
    raise ConfigError(f"launch/config/bringups.yaml is missing around {Path(__file__).parent}; install robot_rl again")


def read_table() -> dict[str, Any]:
    """Return the table, as it is written."""
    table: dict[str, Any] = yaml.load((table_folder() / "bringups.yaml").read_text(encoding="utf-8"), Loader=_YAML)
    return table


def from_text(name: str, text: str, default: Any) -> Any:
    """Return the value of an argument from its text, of the type of its default.

    Args:
        name: As the user wrote it, for messages.
        text: YAML, where the default is no text; entries of a list become texts.
        default: In the table.

    Raises:
        ConfigError: if it is of another type.
    """
    if isinstance(default, str):
        return text
    value = parse_yaml(text, name)
    if type(value) is not type(default):
        raise ConfigError(f"{name} has to be {_KINDS[type(default)]}, got {text!r}")
    return [str(item) for item in value] if isinstance(value, list) else value


def from_words(name: str, words: Sequence[str]) -> list[str]:
    """Return the entries of a list that is given word by word; a word may be a list in brackets, as for `ros2 launch`.

    Raises:
        ConfigError: if what is in brackets is no list.
    """
    return [entry for word in words for entry in (from_text(name, word, []) if word.startswith("[") else [word])]


def node_specs(table: Mapping[str, Any], bringup: str, arguments: Mapping[str, Any]) -> list[NodeSpec]:
    """Return the nodes of a bringup with these arguments; those left out have their default.

    What is an empty text or list then is not among the parameters, as they count more than a parameter file. It is the
    default of the node, too.

    Raises:
        UnknownNameError: if there is no such bringup, argument, or node in `only` or `without`.
    """
    if bringup not in table["bringups"]:
        raise UnknownNameError("bringup", bringup, table["bringups"])
    for name in arguments:
        if name not in table["arguments"]:
            raise UnknownNameError("argument", name, table["arguments"])
    values = {name: arguments.get(name, entry["default"]) for name, entry in table["arguments"].items()}
    for name, entry in table["derived"].items():
        values[name] = entry["given"] if values[entry["of"]] else entry["otherwise"]
    names = _filled(table["bringups"][bringup]["nodes"], values)
    for name in (*values["only"], *values["without"]):
        if name not in names:
            raise UnknownNameError("node of this bringup", name, names)
    specs = []
    for name in names:
        if name not in (values["only"] or names) or name in values["without"]:
            continue
        entry = dict(table["nodes"][name])
        filled = {key: _filled(value, values) for key, value in entry.pop("parameters", {}).items()}
        parameters = {key: value for key, value in filled.items() if value not in ("", [])}
        specs.append(NodeSpec(name, parameters=parameters, params=str(values["params"]), **entry))
    return specs


def used_arguments(table: Mapping[str, Any], bringup: str) -> set[str]:
    """Return the arguments of which a bringup makes use, whatever the others are."""
    found, nodes = set(EVERYWHERE), list(table["bringups"][bringup]["nodes"])
    while nodes:
        name = nodes.pop()
        of_node = table["nodes"].get(name, {}).get("parameters", {})
        for place in (name, *_texts(of_node)):
            for key in _PLACE.findall(place):
                derived = table["derived"].get(key)
                if derived is None:
                    found.add(key)
                    continue
                found.add(derived["of"])
                nodes += [node for node in derived["given"] if node in table["nodes"]]
    return found


def _texts(value: Any) -> Iterator[str]:
    """Return all texts in a tree."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(entry)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return the value with arguments in their places; a place that is all of it takes the argument's type."""
    if isinstance(value, str) and value.startswith("{") and value.endswith("}") and value[1:-1] in values:
        return values[value[1:-1]]
    if isinstance(value, str):
        return value.format(**values)
    if isinstance(value, list):
        filled: list[Any] = []
        for item in value:
            one = _filled(item, values)
            filled += one if isinstance(one, list) else [one]
        return filled
    return value


def _flow(value: Any) -> str:
    """Return a parameter's value as `-p` takes it."""
    if isinstance(value, str):
        return yaml.safe_dump(value, default_style='"', width=10**6).strip()
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("...\n").strip()
