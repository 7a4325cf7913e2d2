"""The file of a base policy: `base.pt` in a run, which then needs nothing else, or one of `robot-rl base train`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.base_policy.contract import BasePolicy, base_name
from robot_rl.config.components import BaseConfig
from robot_rl.errors import BasePolicyError, CheckpointError
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint
from robot_rl.system.atomic_file import replace_file, writing

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
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
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


def facts_of_base(base: BaseConfig, run: Path) -> dict[str, str] | None:
    """Return name and identity of the base that a run corrects, by its own file or the one that it begins with.

    Raises:
        BasePolicyError: if there is none.
        CheckpointError: if it cannot be read, or is of another kind.
    """
    if base.kind == "none":
        return None
    own, given, name = run / BASE_FILE, Path(base.path), base_name(base.kind, base.path)
    if not own.exists() and not given.is_file():
        raise BasePolicyError(f"base {name}: there is no file {given}; `robot-rl base train` makes one")
    return {"name": name, "identity": read_base(own if own.exists() else given, base.kind)["identity"]}


def keep_base(base: BaseConfig, run: Path) -> None:
    """Copy the file of a base into a run, which then needs nothing else; nothing without a base, or where it is kept.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    if base.kind != "none" and not (kept := run / BASE_FILE).exists():
        with writing(kept):
            replace_file(kept, [Path(base.path).read_bytes()])
