"""Configurations from a YAML file and `key=value` overrides: read, checked, and written again.

All problems are reported at once, each with its full dotted key, the value given and the valid ones.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import ValidationError

from robot_rl.config.components import WORLD_SECTIONS, TrainConfig
from robot_rl.config.consistency import check_deployed_noise
from robot_rl.config.describe import describe_type, key_names
from robot_rl.config.field_types import annotations_of, bare_type, section_type
from robot_rl.config.resuming import as_without, renamed_setting, with_new_names
from robot_rl.config.yaml_file import MAX_DEPTH, dump_yaml, parse_yaml, read_yaml
from robot_rl.errors import ConfigError
from robot_rl.system.atomic_file import write_atomically

_T = TypeVar("_T")
ALIASES = {"steps": "env_steps", "obs": "observations"}
"""Flags of `robot-rl train` that stand for settings of other names."""

DEPLOYED = "sac.deployed_noise"
"""The setting of how a finished policy acts."""
_MAX_SHOWN = 200
"""Characters of a refused value that a message shows."""


def load_config(path: Path | None = None, overrides: Sequence[str] = ()) -> TrainConfig:
    """Load the configuration of a training run: defaults, changed by a file, changed by overrides.

    Args:
        path: YAML file of nested keys, or None for the defaults.
        overrides: `key.sub=value` each, with the value in YAML, e.g. `sac.hidden_sizes=[128, 128]`; the last one wins.

    Raises:
        ConfigError: if the file cannot be read, a key is unknown, or a value has the wrong type or is out of range.
    """
    return load_component(TrainConfig, path, overrides)


def load_run_config(path: Path, overrides: Sequence[str] = (), instead: Path | None = None) -> TrainConfig:
    """Load the configuration of a run as `load_config` does; it may be one of an earlier revision.

    Args:
        path: The `config.yaml` of the run, with every setting of its time.
        overrides: See `load_config`.
        instead: A person's file in its place, whose settings that are left out have their default; None: there is none.

    Raises:
        ConfigError: as `load_config`.
    """
    tree = with_new_names(_read_file(instead or path))
    return _overridden(TrainConfig, tree if instead else as_without(tree), instead or path, overrides)


def load_component(config_type: type[_T], path: Path | None = None, overrides: Sequence[str] = ()) -> _T:
    """Load another configuration as `load_config` does, e.g. that of a labeller.

    Args:
        config_type: Its dataclass.
        path: See `load_config`.
        overrides: See `load_config`.

    Raises:
        ConfigError: as `load_config`.
    """
    return _overridden(config_type, _read_file(path) if path else {}, path, overrides)


def component_from_dict(config_type: type[_T], tree: Any, where: str) -> _T:
    """Make another configuration from plain values, as `config_from_dict` does.

    Args:
        config_type: Its dataclass.
        tree: Mapping of its fields.
        where: Where the values come from, for messages.

    Raises:
        ConfigError: as `config_from_dict`, and if the values are no mapping.
    """
    if not isinstance(tree, dict):
        raise ConfigError(f"{where}: has to be a mapping of settings, got {_shown(tree)}")
    try:
        return _checked(config_type, tree, {})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def config_from_dict(tree: Mapping[str, Any]) -> TrainConfig:
    """Make a configuration from nested plain values, lists for tuples; keys left out keep their default.

    Raises:
        ConfigError: if a key is unknown, or a value has the wrong type or is out of range.
    """
    return _checked(TrainConfig, tree, {})


def config_to_dict(config: Any) -> dict[str, Any]:
    """Return nested plain values of a configuration, lists for tuples; `config_from_dict` is the inverse."""
    return {key: _to_plain(value) for key, value in dataclasses.asdict(config).items()}


def flat_settings(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested sections by dotted key; a mapping with other keys, a schedule, is one of them."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        section = isinstance(value, Mapping) and value and all(isinstance(key, str) for key in value)
        flat |= flat_settings(value, f"{prefix}{name}.") if section else {f"{prefix}{name}": value}
    return flat


def in_other_world(config: TrainConfig, task: str | None = None, overrides: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration of a run with another world: another task, or other settings of `WORLD_SECTIONS`.

    `sac.deployed_noise`, how the same policy acts, may be another one, too.

    Args:
        config: Of the run.
        task: Name of the task; None keeps it.
        overrides: See `load_config`.

    Raises:
        ConfigError: if a setting is none of these, or has a wrong value.
    """
    tree = config_to_dict(config) | ({} if task is None else {"task": task})
    for override in overrides:
        update = _read_override(override)
        if any(key != DEPLOYED and key.split(".")[0] not in WORLD_SECTIONS for key in flat_settings(update)):
            raise ConfigError(
                f"{override!r} is no setting of the world, and the policy stays as it is; valid: {DEPLOYED} and the "
                f"sections {', '.join(WORLD_SECTIONS)}"
            )
        tree = _merge(tree, update)
    other = _checked(TrainConfig, tree, {})
    check_deployed_noise(other)
    return other


def dump_config(config: TrainConfig, path: Path) -> None:
    """Write every key, set or default, to a YAML file that `load_config` reads.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    write_atomically(path, dump_yaml(config_to_dict(config)))


class _Problem(NamedTuple):
    key: str
    text: str


def _overridden(config_type: type[_T], tree: dict[str, Any], path: Path | None, overrides: Sequence[str]) -> _T:
    """Make a configuration from what a file says, changed by overrides."""
    sources = dict.fromkeys(flat_settings(tree), str(path))
    for override in overrides:
        update = _read_override(override)
        tree = _merge(tree, update)
        sources |= dict.fromkeys(flat_settings(update), "command line")
    return _checked(config_type, tree, sources)


def _checked(config_type: type[_T], tree: Mapping[str, Any], sources: Mapping[str, str]) -> _T:
    problems: list[_Problem] = []
    config = _build(config_type, tree, "", problems, config_type)
    if config is None:
        lines = [f"{key}{_source_of(key, sources)}: {text}" for key, text in problems]
        raise ConfigError("\n".join(["invalid configuration:", *lines] if len(lines) > 1 else lines))
    return config


def _build(config_type: type[_T], tree: Any, prefix: str, problems: list[_Problem], root: type) -> _T | None:
    """Make a dataclass from a tree, from the inside out; append what is wrong and then return None."""
    types, before = annotations_of(config_type), len(problems)
    values: dict[str, Any] = {}
    where = prefix.rstrip(".") or "configuration"
    if not isinstance(tree, Mapping):
        problems.append(_Problem(where, f"{_shown(tree)} is not a section; valid keys in it: {', '.join(types)}"))
        return None
    for key, value in tree.items():
        dotted = f"{prefix}{key}"
        if root is TrainConfig and (renamed := renamed_setting(dotted, value)) is not None:
            now = renamed.new_key if renamed.value is None else f"{renamed.new_key}={renamed.new_value}"
            problems.append(_Problem(dotted, f"{value!r} was renamed; use {now}"))
        elif key not in types:
            problems.append(_Problem(dotted, _unknown_key(str(key), prefix, types, root)))
        elif (section_class := section_type(types[key])) is not None:
            # A section whose lines are all commented out reads as null.
            section = _build(section_class, {} if value is None else value, f"{dotted}.", problems, root)
            values |= {key: section} if section is not None else {}
        elif refusal := _refusal(value, types[key]):
            problems.append(_Problem(dotted, f"{_shown(value)} {refusal}; valid: {describe_type(types[key])}"))
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
    try:
        config = config_type(**values)
        return config if len(problems) == before else None
    except ValidationError as error:
        for detail in error.errors():
            name, *rest = detail["loc"] or ("",)
            at = "".join(f"[{index}]" for index in rest)
            valid = f"; valid: {describe_type(types[str(name)])}" if name in types else ""
            message = (
                detail["msg"]
                .removeprefix("Value error, ")
                .replace("Input should be", "should be")
                .replace("a valid tuple", "a list")
            )
            key = f"{prefix}{name}{at}".rstrip(".") or where
            problems.append(_Problem(key, f"{_shown(detail['input'])} {message}{valid}"))
        return None


def _unknown_key(key: str, prefix: str, siblings: Mapping[str, Any], root: type) -> str:
    if not prefix and "." in key and key in key_names(root):
        nested = "".join(f"{name}: {{" for name in key.split(".")[:-1])
        return f"in a file sections are nested: {nested}{key.rpartition('.')[2]}: ...{'}' * key.count('.')}"
    by_name = {known.rpartition(".")[2]: known for known in reversed(key_names(root))}
    here = {name: f"{prefix}{name}" for name in siblings}
    close = [ALIASES[key]] if not prefix and ALIASES.get(key) in siblings else []
    close += [by_name[key]] if key in by_name else []
    close += [here[name] for name in difflib.get_close_matches(key, here, n=1)]
    close += [by_name[name] for name in difflib.get_close_matches(key, by_name, n=1, cutoff=0.8)]
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    level = f"in {prefix.rstrip('.')!r}" if prefix else "at the top level"
    return f"unknown key{hint} valid keys {level}: {', '.join(siblings)}"


def _source_of(key: str, sources: Mapping[str, str]) -> str:
    bare = key.partition("[")[0]
    for known, source in sources.items():
        if known == bare or known.startswith(f"{bare}."):
            return f" ({source})"
    return ""


def _refusal(value: Any, annotation: Any) -> str:
    """Return why a value is refused that pydantic would accept; empty if it is not."""
    annotation = bare_type(annotation)
    items = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(item, float) and not math.isfinite(item) for item in items):
        return "is not a finite number"
    if get_origin(annotation) is Literal and type(value) not in {type(choice) for choice in get_args(annotation)}:
        return "has another type"  # to Python, True and 1.0 equal 1
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _to_plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _merge(base: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in update.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping) and not any(str(name).isdecimal() for name in value):
            merged[key] = _merge(old, value)
        else:  # also a schedule, whose keys are numbers
            merged[key] = value
    return merged


def _read_file(path: Path) -> dict[str, Any]:
    tree = read_yaml(path, "configuration file")
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"configuration file {path}: holds {type(tree).__name__}, expected `key: value` lines")
    return tree


def _read_override(override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    names = key.strip().split(".")
    if not equals or not all(names):
        raise ConfigError(f"override {override!r}: expected key=value, e.g. sac.discount=0.98")
    if len(names) > MAX_DEPTH:
        raise ConfigError(f"override {_shown(override)}: the key is nested deeper than {MAX_DEPTH} levels")
    family = names == ["task"] and text.rstrip().endswith(":")  # `gym:` is a name, and to YAML a mapping
    tree: Any = text.strip() if family else parse_yaml(text, f"override {_shown(override)}")
    for name in reversed(names):
        tree = {name: tree}
    return dict(tree)
