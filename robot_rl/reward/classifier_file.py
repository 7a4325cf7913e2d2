"""The file of a reward classifier, read once: what is used is what its hash says, whoever writes it meanwhile."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from robot_rl.reward.classifier import RewardClassifier, classifier_of_tree
from robot_rl.reward.head_file import made_of, read_content


@dataclass(frozen=True, eq=False)
class ClassifierFile:
    """A classifier and the bytes that it was made of.

    Attributes:
        path: Where it lay.
        content: Of the file.
        classifier: What that is.
    """

    path: Path
    content: bytes
    classifier: RewardClassifier

    @property
    def sha256(self) -> str:
        """Of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


def read_classifier_file(path: Path) -> ClassifierFile:
    """What `RewardClassifier.write` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    what = "reward classifier"
    content = read_content(path, what, "`robot-rl reward train` makes one")
    return ClassifierFile(path, content, made_of(content, path, classifier_of_tree, what))
