"""A reward classifier, and its file: heads on frozen features of each camera decide whether a frame shows success.

It works on observations of a recording and on live ones alike. A success is k frames in a row that show it: single
frames deceive, and an episode has a hundred of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.errors import DataError
from robot_rl.reward.classifier.physical_gate import PhysicalGate, all_open
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.head_file import ReadFile, made_of, read_content, write_tree
from robot_rl.reward.heads.success_head import SuccessHead, head_of
from robot_rl.reward.validation.probability_calibration import sigmoid
from robot_rl.system.model_files import CLASSIFIER


@dataclass(frozen=True, eq=False)
class RewardClassifier:
    """p = sigmoid(sum over cameras of slope z + offset), z the mean logit of the camera's heads.

    An episode is a success once p reaches the threshold in `consecutive` frames running, with all gates open.

    Attributes:
        task: Name of the task.
        heads: By camera; all of one encoder and size.
        slopes: Of each camera, in the order of `heads`; 0 for one that adds nothing.
        offset: Of the sum.
        threshold: Of p.
        consecutive: Frames.
        gates: Conditions without which no success counts.
        facts: How it was trained; strings and numbers.
    """

    task: str
    heads: Mapping[str, SuccessHead]
    slopes: tuple[float, ...]
    offset: float
    threshold: float
    consecutive: int
    gates: tuple[PhysicalGate, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Height and width of the frames [px]."""
        return next(iter(self.heads.values())).size

    @property
    def encoder(self) -> str:
        """Name of the encoder whose features the heads take."""
        return next(iter(self.heads.values())).encoder

    @property
    def trained_on(self) -> tuple[str, ...]:
        """Fingerprints of the episodes that it was trained on."""
        return next(iter(self.heads.values())).trained_on

    @property
    def cameras(self) -> tuple[str, ...]:
        """Cameras whose frames count; one with slope 0 is not used."""
        return tuple(camera for camera, slope in zip(self.heads, self.slopes, strict=True) if slope != 0.0)

    def probability(self, logits: np.ndarray) -> np.ndarray:
        """Return the calibrated probability of success, of mean logits (R, cameras of `heads`), shape (R,)."""
        return sigmoid(logits @ np.array(self.slopes) + self.offset)

    def write(self, path: Path) -> None:
        """Write the classifier to a file.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        write_tree(
            path,
            CLASSIFIER.tree(
                {
                    **vars(self),
                    "heads": {camera: head.tree() for camera, head in self.heads.items()},
                    "slopes": list(self.slopes),
                    "gates": [vars(gate) for gate in self.gates],
                    "facts": dict(self.facts),
                }
            ),
        )


def classifier_of_tree(tree: Mapping[str, Any]) -> RewardClassifier:
    """Return the classifier of a tree that `RewardClassifier.write` wrote.

    Raises:
        KeyError: if something is missing; likewise TypeError.
        ValueError: if it is of another kind or version.
    """
    parts = CLASSIFIER.parts(tree)
    heads = {camera: head_of(head) for camera, head in parts["heads"].items()}
    gates = tuple(PhysicalGate(**gate) for gate in parts["gates"])
    return RewardClassifier(**{**parts, "heads": heads, "slopes": tuple(parts["slopes"]), "gates": gates})


def fast_features(encoder: str, size: int) -> FrameFeatures:
    """Return the features of a classifier, computed in batches: one frame at a time would take too long."""
    return FrameFeatures(encoder, size, batch=16, precision="auto")


class FrameScorer:
    """Computes logits and scores of observations with a classifier.

    Args:
        classifier: The classifier.
    """

    def __init__(self, classifier: RewardClassifier) -> None:
        self.classifier = classifier
        self._features = fast_features(classifier.encoder, classifier.size)

    @torch.inference_mode()
    def logits(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the mean logit of each camera's heads, of R observations (columns of R rows); shape (R, cameras).

        Raises:
            DataError: if a camera is missing.
        """
        used = {
            camera: self.classifier.heads[camera].logits(self._features(frames_of(observations, camera))).mean(1)
            for camera in self.classifier.cameras
        }
        blank = torch.zeros_like(next(iter(used.values())))
        columns = [used.get(camera, blank) for camera in self.classifier.heads]
        found: np.ndarray = torch.stack(columns, 1).double().numpy()
        return found

    def score(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the probability of success, 0 where a gate is closed, of R observations; shape (R,)."""
        p = self.classifier.probability(self.logits(observations))
        return p * all_open(self.classifier.gates, observations, len(p))


def frames_of(observations: Mapping[str, np.ndarray], camera: str) -> np.ndarray:
    """Return the frames of a camera, uint8 (R, height, width, 3).

    Raises:
        DataError: if there are none.
    """
    frames = observations.get(IMAGE_PREFIX + camera)
    if frames is None:
        cameras = [key.removeprefix(IMAGE_PREFIX) for key in observations if key.startswith(IMAGE_PREFIX)]
        raise DataError(f"no frames of camera {camera}; there are {', '.join(sorted(cameras)) or 'none'}")
    return frames


@dataclass(frozen=True, eq=False)
class ClassifierFile(ReadFile):
    """A classifier, and the bytes of its file.

    Attributes:
        classifier: What the file holds.
    """

    classifier: RewardClassifier


def read_classifier_file(path: Path) -> ClassifierFile:
    """Read what `RewardClassifier.write` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    what = CLASSIFIER.label
    content = read_content(path, what, CLASSIFIER.source)
    return ClassifierFile(path, content, made_of(content, path, classifier_of_tree, what))


def debounced(score: np.ndarray, consecutive: int) -> np.ndarray:
    """Return the least score of the last k frames; 0 before there are as many. Shape (R,).

    Args:
        score: Of each frame, in [0, 1], shape (R,).
        consecutive: k.
    """
    if len(score) < consecutive:
        return np.zeros(len(score))
    return np.concatenate([np.zeros(consecutive - 1), sliding_window_view(score, consecutive).min(axis=1)])


def debounced_to_the_end(score: np.ndarray, shows: np.ndarray, consecutive: int) -> np.ndarray:
    """Return the debounced score of an episode, shape (R + k - 1,).

    The last frame of an episode that its task ended as a success is repeated: the next frames would have shown the
    same.

    Args:
        score: As for `debounced`.
        shows: Which frames show success, shape (R,).
        consecutive: k.
    """
    return debounced(np.append(score, np.repeat(score[-1:] * shows[-1], consecutive - 1)), consecutive)


def first_at_least(score: np.ndarray, threshold: float) -> int | None:
    """Return the first frame whose score reaches the threshold; None if none does."""
    reached = np.flatnonzero(score >= threshold)
    return int(reached[0]) if len(reached) else None
