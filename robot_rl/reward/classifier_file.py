"""The file of a reward classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from robot_rl.reward.classifier import RewardClassifier, classifier_of_tree
from robot_rl.reward.head_file import ReadFile, made_of, read_content


@dataclass(frozen=True, eq=False)
class ClassifierFile(ReadFile):
    """A classifier and the bytes that it was made of.

    Attributes:
        classifier: What the file holds.
    """

    classifier: RewardClassifier


def read_classifier_file(path: Path) -> ClassifierFile:
    """What `RewardClassifier.write` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    what = "reward classifier"
    content = read_content(path, what, "`robot-rl reward train` makes one")
    return ClassifierFile(path, content, made_of(content, path, classifier_of_tree, what))
