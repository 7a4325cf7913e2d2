"""The rules by which a resumed run and a fork take settings over: those that are marked, and no others.

Also settings with a new name for their key or value, and those that runs of earlier revisions did not have: new files
and command lines with an old name are refused; old runs are still read, and go on as they were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from robot_rl.config.components import TrainConfig
from robot_rl.config.field_types import Forkable, Resumable, annotations_of, mark_of, section_type

_T = TypeVar("_T")

_NETWORKS = "the networks of the checkpoint were made with it"
_EPISODES = "the episodes in its replay were played with it"
_PAST = "that part of the run is over"
_REASONS = {
    "sac.initial_temperature": _PAST,
    "sac": _NETWORKS,
    "replay": _NETWORKS,
    "encoder": _NETWORKS,
    "algorithm": _NETWORKS,
    "base": _NETWORKS,
    "observations": _NETWORKS,
    "demonstrations": _PAST,
    "warmup": _PAST,
    "warmup_steps": _PAST,
    "offline": _PAST,
    "device": "its random state is one of that device",
}
"""Why a fork may not change a setting, by its key or section; otherwise `_EPISODES`."""


def resumable_changes(old: _T, new: _T) -> _T:
    """Return `old` with the values of `new` for every setting that a resumed run may change.

    A run may be resumed with `new` if the result equals `new`.
    """
    return _changes(old, new, forks=False)


def forkable_changes(old: _T, new: _T) -> _T:
    """Return `old` with the values of `new` for every setting that a fork may change; see `resumable_changes`."""
    return _changes(old, new, forks=True)


def with_saved_cameras(old: TrainConfig, new: TrainConfig) -> TrainConfig:
    """Return `new` with the cameras of `old` where it names none: those of a run stay, whatever its place has now."""
    if new.encoder.cameras:
        return new
    return dataclasses.replace(new, encoder=dataclasses.replace(new.encoder, cameras=old.encoder.cameras))


def forkable_keys(config_type: type, prefix: str = "") -> list[str]:
    """Return the settings, and whole sections as `section.*`, that a fork may change and a resumed run may not."""
    keys = []
    for name, annotation in annotations_of(config_type).items():
        section = section_type(annotation)
        if mark_of(annotation, Forkable) is not None:
            keys.append(f"{prefix}{name}.*" if section else f"{prefix}{name}")
        elif section is not None and not mark_of(annotation, Resumable):
            keys += forkable_keys(section, f"{prefix}{name}.")
    return keys


def why_fixed(key: str) -> str:
    """Return why a fork may not change a setting."""
    return _REASONS.get(key, _REASONS.get(key.partition(".")[0], _EPISODES))


def _changes(old: _T, new: _T, *, forks: bool) -> _T:
    changes: dict[str, Any] = {}
    for name, annotation in annotations_of(type(old)).items():
        before, after = getattr(old, name), getattr(new, name)
        if forks and mark_of(annotation, Forkable) is not None:
            changes[name] = after
        elif mark := mark_of(annotation, Resumable):
            changes[name] = after if mark.applies(old, new) else before
        elif section_type(annotation) is not None:
            changes[name] = _changes(before, after, forks=forks)
    return dataclasses.replace(old, **changes)  # type: ignore[type-var]  # every section is a dataclass


@dataclass(frozen=True)
class RenamedSetting:
    """One setting with a new name.

    Attributes:
        key: Its dotted key before.
        new_key: Its dotted key now.
        value: The value that has a new name; None if the key was renamed, with any value.
        new_value: Its name now.
    """

    key: str
    new_key: str
    value: Any = None
    new_value: Any = None


RENAMED = (RenamedSetting("reward.kind", "reward.kind", "vlm", "labels"),)
"""All of them."""
WITHOUT = {"sac": {"imitation": 0.0}}
"""Values that are the same as not to have the setting, by section, where its default is another."""


def renamed_setting(key: str, value: object) -> RenamedSetting | None:
    """Return the entry that renames this key, or this value of it; None if neither was renamed."""
    return next((one for one in RENAMED if one.key == key and one.value in (None, value)), None)


def with_new_names(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings of an earlier revision under the names of today."""
    renewed: dict[str, Any] = {}
    for name, value in tree.items():
        key, section = f"{prefix}{name}", value
        if isinstance(value, Mapping):
            section = with_new_names(value, f"{key}.")
        elif (entry := renamed_setting(key, value)) is not None:
            _put(renewed, entry.new_key.removeprefix(prefix), value if entry.value is None else entry.new_value)
            continue
        renewed[name] = section
    return renewed


def as_without(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run with the values of `WITHOUT` where an earlier revision did not have the setting."""
    return {**tree, **{section: {**values, **tree.get(section, {})} for section, values in WITHOUT.items()}}


def _put(tree: dict[str, Any], key: str, value: object) -> None:
    *sections, name = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
    tree[name] = value
