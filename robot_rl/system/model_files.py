"""The registry of our files with learned parameters: the kind and version in each, and how to get one.

    kind               file                                  container
    training           checkpoint.pt of a run                `learn.checkpoint`
    learner            none: crosses the link to a learner   `learn.checkpoint`
    reward classifier  classifier.pt                         `reward.heads.head_file`
    success            head of `label train`                 `reward.heads.head_file`
    progress           progress_head.pt                      `reward.heads.head_file`
    base policy        base.pt of a run, or by itself        `learn.checkpoint`

The state of an algorithm inside a checkpoint has a version of its own, which the algorithm checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        name: In the file, under `kind`.
        label: For messages.
        version: In the file, under `version` or `format`; the one that is written and read.
        source: How to get one, for messages.
        is_named: Whether the file holds its kind. Files of heads for success do not: they are older than the others.
    """

    name: str
    label: str
    version: int
    source: str
    is_named: bool = True

    def tree(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of a file: version and kind, then the parts."""
        return {"format": self.version, **({"kind": self.name} if self.is_named else {}), **parts}

    def parts(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of what `tree` made.

        Raises:
            ValueError: if it is of another kind or version.
        """
        kind = kind_of(tree)
        if kind is not self:
            raise ValueError(f"it is a {kind.label if kind else 'file of an unknown kind'}; {self.source}")
        if tree.get("format") != self.version:
            raise ValueError(f"it has version {tree.get('format')}, this program reads {self.version}")
        return {name: value for name, value in tree.items() if name not in ("format", "kind")}


TRAINING = FileKind("training", "checkpoint of a training", 2, "`robot-rl train` writes one")
LEARNER = FileKind("learner", "state of a learner", 2, "a learner sends one")
CLASSIFIER = FileKind("reward classifier", "reward classifier", 1, "`robot-rl classifier train` makes one")
SUCCESS_HEAD = FileKind(
    "success", "head for labels of success", 2, "`robot-rl label train --kind success` makes one", is_named=False
)
PROGRESS_HEAD = FileKind("progress", "progress head", 1, "`robot-rl label train --kind progress` makes one")
KINDS = {kind.name: kind for kind in (TRAINING, LEARNER, CLASSIFIER, SUCCESS_HEAD, PROGRESS_HEAD)}


def kind_of(tree: Mapping[str, Any]) -> FileKind | None:
    """Return the kind of the content of a file, None if it is unknown."""
    return KINDS.get(str(tree["kind"])) if "kind" in tree else SUCCESS_HEAD
