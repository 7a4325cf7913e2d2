"""YAML as people write it by hand: read with limits on depth and size, each fault reported in one line."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from robot_rl.errors import ConfigError

YAML_SUFFIXES = (".yaml", ".yml")
MAX_DEPTH = 20
"""Levels of nesting of a file or an override; settings have four."""
_MAX_VALUES = 10_000
"""Values of a file or an override, each counted as often as aliases repeat it."""


def read_yaml(path: Path, what: str) -> Any:
    """Return the value of a YAML file.

    Args:
        path: The file.
        what: Its kind in messages, e.g. `configuration file`.

    Raises:
        ConfigError: if it cannot be read, is malformed or too large, in one line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {what} {path}: {error.strerror or error}; check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {what} {path}: {error}") from error
    return parse_yaml(text, f"{what} {path}")


def parse_yaml(text: str, what: str) -> Any:
    """Return the value of a YAML text.

    Args:
        text: YAML.
        what: Its name in messages, e.g. `override 'seed='`.

    Raises:
        ConfigError: if it is malformed or too large, in one line.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except (_OversizedYamlError, RecursionError) as error:
        limits = f"nested deeper than {MAX_DEPTH} levels, or holds more than {_MAX_VALUES} values"
        raise ConfigError(f"{what}: is {limits}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{what}: is not YAML: {' '.join(str(error).split())}") from error
    except (ValueError, LookupError, AttributeError) as error:  # of a scalar, e.g. `2001-13-45` or `!!bool maybe`
        raise ConfigError(f"{what}: holds a malformed number or date: {error!r}") from error


def dump_yaml(value: Any) -> str:
    """Return plain values as YAML that `parse_yaml` reads as the same values, keys in their order."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


class _OversizedYamlError(yaml.YAMLError):
    """YAML of more levels or values than a configuration may have."""


class _Loader(yaml.SafeLoader):
    """YAML 1.1 with changes: `3e-4` is a number, as in YAML 1.2; a key given twice is an error; the size has limits."""

    def get_single_node(self) -> yaml.Node | None:
        """Return the root node, before anything is made of it.

        Raises:
            _OversizedYamlError: if it is nested too deeply or holds too many values, with aliases followed.
        """
        root = super().get_single_node()
        rest, count = [(root, 0)], 0
        while rest:
            node, depth = rest.pop()
            count += 1
            if depth > MAX_DEPTH or count > _MAX_VALUES:
                raise _OversizedYamlError
            if isinstance(node, yaml.SequenceNode):
                rest += [(item, depth + 1) for item in node.value]
            elif isinstance(node, yaml.MappingNode):
                rest += [(part, depth + 1) for pair in node.value for part in pair]
        return root

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Python dict of a YAML mapping."""
        keys = [key_node.value for key_node, _ in node.value if isinstance(key_node, yaml.ScalarNode)]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise yaml.constructor.ConstructorError(
                None, None, f"given twice: {', '.join(sorted(twice))}", node.start_mark
            )
        return super().construct_mapping(node, deep)

    def construct_tuple(self, node: yaml.SequenceNode) -> list[Any]:
        """Python list of a YAML sequence with Python's tag of a tuple: `ros2 launch` writes lists in this way."""
        return self.construct_sequence(node, deep=True)


class _Dumper(yaml.SafeDumper):
    """Quotes each text that `_Loader` would read as something else, e.g. `3e4`."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)[eE][-+]?[0-9]+$"),
        list("-+0123456789."),
    )
_Loader.add_constructor("tag:yaml.org,2002:python/tuple", _Loader.construct_tuple)
