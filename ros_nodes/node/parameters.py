"""Node parameters from a frozen configuration dataclass: names, types, ranges and descriptions of its fields.

Parameters that say something of several things: a list of texts `NAME=VALUE`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from robot_rl.config.describe import list_keys
from robot_rl.config.field_types import annotations_of
from robot_rl.config.nodes import REPLACED_PARAMETERS
from robot_rl.errors import ConfigError, UnknownNameError
from ros_nodes.node.parameter_file import ParameterSection, check_namespace, parameter_files, read_sections
from ros_nodes.node.robot_node_base import RobotNode


def named_values(parameter: str, entries: Sequence[str], names: Collection[str] | None = None) -> dict[str, str]:
    """Return the values by name.

    Args:
        parameter: What the parameter is called.
        entries: Its texts.
        names: Names that exist; None takes any.

    Raises:
        ConfigError: if an entry is not of this form, or a name appears twice.
        UnknownNameError: if a name does not exist.
    """
    values: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not (name and equals and value):
            raise ConfigError(f"{parameter}: an entry has to be NAME=VALUE, got {entry!r}")
        if name in values:
            raise ConfigError(f"{parameter}: {name} appears twice")
        if names is not None and name not in names:
            raise UnknownNameError(f"name in {parameter}", name, names)
        values[name] = value
    return values


_T = TypeVar("_T")


def declare(
    node: RobotNode, config_type: type[_T], defaults: Mapping[str, Any] | None = None, *, more: bool = False
) -> _T:
    """Declare a parameter for every field and return the configuration that they make.

    Args:
        node: The node.
        config_type: A configuration dataclass.
        defaults: Defaults other than the dataclass's own.
        more: Whether other parameters are declared afterwards, so that unknown ones cannot be refused yet.

    Raises:
        ConfigError: naming each parameter of a wrong type, out of range, unknown, or of an earlier version.
    """
    files = [section for file in parameter_files(sys.argv) for section in read_sections(file)]
    check_namespace(files, node.get_fully_qualified_name())
    problems, values = [], {}
    for key in list_keys(config_type):
        default = _to_ros((defaults or {}).get(key.key, key.default))
        descriptor = ParameterDescriptor(description=f"{key.doc} ({key.type})")
        _set_range(descriptor, annotations_of(config_type)[key.key])
        try:
            values[key.key] = _of_ros(node.declare_parameter(key.key, default, descriptor).value)
        except (InvalidParameterTypeException, InvalidParameterValueException) as error:
            problems.append(f"{key.key}: {error}; valid: {key.type}")
    if not more:
        problems += _unknown(node, config_type, files)
        _report_overridden(node, files)
    if problems:
        raise ConfigError("\n".join(problems))
    return _build(config_type, values)


def refuse_changes(node: Node, config_type: type, live: Mapping[str, Callable[[Any], None]] | None = None) -> None:
    """From now on, parameters can change only where `live` says what to do with the new value; the rest say why not.

    A function of `live` may refuse a value by a `ConfigError`; what it says is the answer.
    """
    live = live or {}
    fields = {field.name for field in dataclasses.fields(config_type)}

    def on_set(changes: list[Parameter[Any]]) -> SetParametersResult:
        for change in changes:
            if change.name in fields and change.name not in live:
                reason = (
                    f"{change.name} counts from the start of {node.get_name()}; restart it with -p {change.name}:=..."
                )
                return SetParametersResult(successful=False, reason=reason)
        try:
            for change in changes:
                if change.name in live:
                    live[change.name](_of_ros(change.value))
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(on_set)


def _unknown(node: RobotNode, config_type: type, files: Sequence[ParameterSection]) -> list[str]:
    """List the given parameters that the node has not; sections for all nodes may name those of others."""
    shared = {name for section in files if section.node is None for name in section.parameters}
    replaced = REPLACED_PARAMETERS.get(config_type, {})
    problems = []
    for name in (name for name in node.given_parameters() if name not in shared):
        if name in replaced:
            problems.append(f"{name}: no parameter of {node.get_name()} any more; set {replaced[name]} instead")
        elif not node.has_parameter(name):
            known = node.list_parameters([], depth=0).names
            problems.append(str(UnknownNameError(f"parameter of {node.get_name()}", name, known)))
    return problems


def _report_overridden(node: RobotNode, files: Sequence[ParameterSection]) -> None:
    """Log the values in parameter files that do not count, because the launch gives others."""
    for section in files:
        for name, value in section.parameters.items():
            if not section.fits(node.get_fully_qualified_name()) or not node.has_parameter(name):
                continue
            if (counts := _of_ros(node.get_parameter(name).value)) != _of_ros(value):
                node.get_logger().info(f"{name}: {counts} counts, not {value} of {section.path}")


def _build(config_type: type[_T], values: dict[str, Any]) -> _T:
    try:
        return config_type(**values)
    except ValidationError as error:
        keys = {key.key: key.type for key in list_keys(config_type)}
        lines = [
            f"{fault['loc'][0]}: {fault['msg']}, got {fault['input']!r}; valid: {keys[str(fault['loc'][0])]}"
            for fault in error.errors()
        ]
        raise ConfigError("\n".join(lines)) from error


def _set_range(descriptor: ParameterDescriptor, annotation: Any) -> None:
    """Return the closed range of a number, where its type has one."""
    if annotation not in (int, float) and get_args(annotation)[:1] not in ((int,), (float,)):
        return
    number = get_args(annotation)[0] if get_args(annotation) else annotation
    bounds = {}
    for info in get_args(annotation)[1:]:
        for constraint in getattr(info, "metadata", ()):
            for side, names in (("low", ("ge", "gt")), ("high", ("le", "lt"))):
                for name in names:
                    if (value := getattr(constraint, name, None)) is not None:
                        bounds[side] = number(value)
    if not bounds:
        return
    if number is int:
        low, high = bounds.get("low", -(2**62)), bounds.get("high", 2**62)
        descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
    else:
        low, high = bounds.get("low", -1.7e308), bounds.get("high", 1.7e308)
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high, step=0.0)]


def _to_ros(value: Any) -> Any:
    """ROS cannot tell the type of an empty list: an empty text stands for none."""
    if isinstance(value, tuple | list):
        return list(value) or [""]
    return value


def _of_ros(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    return tuple(item for item in value if item != "")
