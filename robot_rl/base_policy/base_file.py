"""The file of a base policy: `base.pt` in a run, which then needs nothing else, or one of `robot-rl base train`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.base_policy.contract import BasePolicy
from robot_rl.errors import CheckpointError
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint

BASE_FILE = "base.pt"
KIND = "base policy"


def save_base(path: Path, kind: str, base: BasePolicy, facts: Mapping[str, Any]) -> None:
    """Write the file of a base.

    Args:
        path: The file.
        kind: Of the base, as in `base.kind`.
        base: The base.
        facts: Of its making, for people.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    made_of = {"kind": kind, "name": base.name, "identity": base.identity}
    payload = {**made_of, "facts": dict(facts), "state": base.state_dict()}
    save_checkpoint(path, payload, kind=KIND, metadata=made_of)


def read_base(path: Path, kind: str) -> dict[str, Any]:
    """Read the file of a base of that kind: `name`, `identity`, `facts`, `state`.

    Raises:
        CheckpointError: if it cannot be read, or is of another kind.
    """
    content = load_checkpoint(path, kind=KIND)
    if content["kind"] != kind:
        raise CheckpointError(
            f"{path} is a base of kind {content['kind']}, not {kind}; use base.kind={content['kind']}"
        )
    return content
