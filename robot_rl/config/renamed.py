"""Settings with a new name for their key or value, and settings that runs of earlier revisions did not have.

New files and command lines with an old name are refused; old runs are still read, and go on as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
