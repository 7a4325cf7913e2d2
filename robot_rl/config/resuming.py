"""The rule by which a resumed run takes settings over: those that are marked `Resumable`, and no others."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from robot_rl.config.field_types import Resumable, annotations_of, mark_of, section_type

_T = TypeVar("_T")


def resumable_changes(old: _T, new: _T) -> _T:
    """Return `old` with the values of `new` for every setting that a resumed run may change.

    A run may be resumed with `new` if the result equals `new`.
    """
    changes: dict[str, Any] = {}
    for name, annotation in annotations_of(type(old)).items():
        before, after = getattr(old, name), getattr(new, name)
        if mark := mark_of(annotation, Resumable):
            changes[name] = after if mark.applies(old, new) else before
        elif section_type(annotation) is not None:
            changes[name] = resumable_changes(before, after)
    return dataclasses.replace(old, **changes)  # type: ignore[type-var]  # every section is a dataclass
