"""The rules by which a resumed run and a fork take settings over: those that are marked, and no others."""

from __future__ import annotations

import dataclasses
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
