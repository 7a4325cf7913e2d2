"""Training of a reward classifier: heads for each camera, then probability and threshold on held-out episodes.

The heads learn from the configured number of frames, spread over the episodes. Each frame of these episodes is then
scored by the head that was not trained on its episode: that gives the calibration, and a threshold for whole episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.errors import ConfigError, DataError, UnknownNameError
from robot_rl.reward.classifier.augment import augmented
from robot_rl.reward.classifier.classifier import RewardClassifier, debounced_to_the_end, fast_features, frames_of
from robot_rl.reward.classifier.frames import FrameLabels, LabelledEpisode, LabelledStore, choose_frames
from robot_rl.reward.classifier.physical_gate import PhysicalGate, all_open
from robot_rl.reward.heads.success_head import FEWEST, SuccessHead, train_head
from robot_rl.reward.validation.probability_calibration import fit_logistic
from robot_rl.reward.validation.threshold import LEAST_THRESHOLD, MAX_FALSE_POSITIVES, least_threshold

LEAST_OPEN = 0.8
"""Share of the frames with success that a gate has to let pass."""


@dataclass(frozen=True)
class ClassifierSettings:
    """Settings of the training.

    Attributes:
        cameras: Whose frames; none takes all that were recorded.
        encoder: `bundled`, `random`, or as `EncoderConfig.name`.
        size: To which frames are brought [px].
        positives: Frames that show success to learn from.
        negatives: Frames that do not.
        margin: Frames before a success that are unclear, and not learned from.
        copies: Augmented variants of each of these frames.
        false_positive_rate: Share of the failing episodes that may be called a success.
        consecutive: Frames that have to show success before an episode is one.
        gates: Conditions without which no success counts.
        seed: Of frames, variants and folds.
    """

    cameras: tuple[str, ...] = ()
    encoder: str = "bundled"
    size: int = 128
    positives: int = 200
    negatives: int = 600
    margin: int = 2
    copies: int = 2
    false_positive_rate: float = MAX_FALSE_POSITIVES
    consecutive: int = 3
    gates: tuple[PhysicalGate, ...] = ()
    seed: int = 0


@dataclass
class _Examples:
    """Features of one camera: of all frames of each episode, and of the frames to learn from with their variants."""

    of_episodes: list[Tensor] = field(default_factory=list)
    chosen: list[Tensor] = field(default_factory=list)


def train_classifier(
    stores: Sequence[LabelledStore],
    task: str,
    settings: ClassifierSettings,
    *,
    on_episode: Callable[[int], object] = lambda done: None,
) -> RewardClassifier:
    """Train a classifier; its `facts` hold the numbers of the training and of the held-out episodes.

    Args:
        stores: Labelled episodes.
        task: Name of the task.
        settings: Of the training.
        on_episode: Called with the number of encoded episodes.

    Raises:
        DataError: if there are too few examples, or frames are missing.
        UnknownNameError: if there is no such camera.
        ConfigError: if a gate or the encoder cannot be used.
    """
    labels, opens, marks, measured = [], [], [], []
    for one in _episodes(stores, settings.margin):  # once for all that is cheap, before what takes minutes
        labels.append(one.labels)
        marks.append(one.fingerprint)
        opens.append(all_open(settings.gates, one.episode.observations, len(one.shows)))
        measured.append([gate.value(one.episode.observations)[one.shows] for gate in settings.gates])
    rng = np.random.default_rng(settings.seed)
    chosen = choose_frames(labels, settings.positives, settings.negatives, rng)
    _check_enough(chosen, labels)
    for gate, values in zip(settings.gates, zip(*measured, strict=True), strict=True):
        _check_open(gate, np.concatenate(values))
    cameras = _cameras(stores, settings)
    encode = fast_features(settings.encoder, settings.size)
    examples = {camera: _Examples() for camera in cameras}
    for number, one in enumerate(_episodes(stores, settings.margin)):
        observations, rows = one.episode.observations, [row for episode, row in chosen if episode == number]
        for camera, found in examples.items():
            frames = frames_of(observations, camera)
            found.of_episodes.append(encode(frames).half())
            variants = [augmented(frames[row], rng) for row in rows for _ in range(settings.copies)]
            found.chosen.append(found.of_episodes[-1][rows].float())
            if variants:
                found.chosen.append(encode(np.stack(variants)))
        on_episode(number + 1)
    episode, positive = _columns(chosen, labels, settings.copies)
    heads, logits = {}, []
    for camera, found in examples.items():
        trained = train_head(torch.cat(found.chosen), positive, episode, seed=settings.seed)
        head = SuccessHead(settings.encoder, settings.size, camera, task, tuple(marks), *trained[:4])
        fold = dict(zip(episode.tolist(), trained.fold.tolist(), strict=True))
        heads[camera] = head
        logits.append([_held_out(head, f, fold.get(number)) for number, f in enumerate(found.of_episodes)])
    of_episodes = [np.stack(columns, 1) for columns in zip(*logits, strict=True)]
    return _calibrated(task, heads, of_episodes, labels, opens, settings)


def _calibrated(
    task: str,
    heads: dict[str, SuccessHead],
    logits: list[np.ndarray],
    labels: list[FrameLabels],
    opens: list[np.ndarray],
    settings: ClassifierSettings,
) -> RewardClassifier:
    """Fit probability and threshold to logits (R, cameras) of held-out frames."""
    clear = np.concatenate([~one.unclear for one in labels])
    truth = np.concatenate([one.shows for one in labels])[clear]
    slopes, offset = _fit_cameras(np.concatenate(logits)[clear], truth)
    draft = RewardClassifier(task, heads, slopes, offset, LEAST_THRESHOLD, settings.consecutive, settings.gates)
    before, after = [], []
    for z, one, is_open in zip(logits, labels, opens, strict=True):
        score = debounced_to_the_end(draft.probability(z) * is_open, one.shows, settings.consecutive)
        if (rest := score[: len(z)][one.negative]).size:
            before.append(rest.max())
        if one.shows.any():
            after.append(score[np.pad(one.shows, (0, len(score) - len(z)), "edge")].max())
    threshold = max(LEAST_THRESHOLD, least_threshold(np.array(before), settings.false_positive_rate))
    facts = {
        "episodes": len(labels),
        "positives": int(min(settings.positives, sum(one.shows.sum() for one in labels))),
        "negatives": int(min(settings.negatives, sum(one.negative.sum() for one in labels))),
        "copies": settings.copies,
        "margin": settings.margin,
        "false_positive_rate": settings.false_positive_rate,
        "held_out_false_positives": int((np.array(before) >= threshold).sum()),
        "held_out_recall": float((np.array(after) >= threshold).mean()),
        "held_out_success_probability": float(np.median(after)),
        "seed": settings.seed,
    }
    return RewardClassifier(task, heads, slopes, offset, threshold, settings.consecutive, settings.gates, facts)


def _fit_cameras(logits: np.ndarray, truth: np.ndarray) -> tuple[tuple[float, ...], float]:
    """Return a slope for each camera, and the offset; a camera with a negative slope is left out."""
    kept = list(range(logits.shape[1]))
    while True:
        *slopes, offset = fit_logistic(logits[:, kept], truth).tolist()
        worst = int(np.argmin(slopes))
        if slopes[worst] > 0 or len(kept) == 1:
            break
        del kept[worst]
    found = dict(zip(kept, slopes, strict=True))
    return tuple(found.get(camera, 0.0) for camera in range(logits.shape[1])), offset


def _held_out(head: SuccessHead, features: Tensor, fold: int | None) -> np.ndarray:
    """Return logits of an episode by the head that was not trained on it; by all where none was."""
    logits = head.logits(features.float())
    column: np.ndarray = (logits.mean(1) if fold is None else logits[:, fold]).double().numpy()
    return column


def _columns(
    chosen: Sequence[tuple[int, int]], labels: Sequence[FrameLabels], copies: int
) -> tuple[np.ndarray, Tensor]:
    """Return the episode of each example and whether it shows success, in the order of the features."""
    episode, positive = [], []
    for number in sorted({number for number, _ in chosen}):
        shown = [bool(labels[number].shows[row]) for other, row in chosen if other == number]
        positive += shown + [one for one in shown for _ in range(copies)]
        episode += [number] * len(shown) * (1 + copies)
    return np.array(episode), torch.tensor(positive)


def _episodes(stores: Sequence[LabelledStore], margin: int) -> Iterator[LabelledEpisode]:
    for store in stores:
        yield from store.episodes(margin)


def _cameras(stores: Sequence[LabelledStore], settings: ClassifierSettings) -> tuple[str, ...]:
    first = next(_episodes(stores, settings.margin)).episode
    there = tuple(key.removeprefix(IMAGE_PREFIX) for key in first.observations if key.startswith(IMAGE_PREFIX))
    if not there:
        raise DataError(f"{first.episode_id}: has no frames; record with cameras, e.g. `robot-rl classifier record`")
    for camera in settings.cameras:
        if camera not in there:
            raise UnknownNameError("camera", camera, there)
    return settings.cameras or there


def _check_open(gate: PhysicalGate, values: np.ndarray) -> None:
    """Refuse a gate that most successes do not pass; the message has its values in the frames that show one."""
    share = float(gate.passes(values).mean())
    if share < LEAST_OPEN:
        low, high = np.quantile(values, [0.05, 0.95])
        raise ConfigError(
            f"gate {gate}: only {share:.0%} of the frames that show success pass it; there, "
            f"{gate.key}[{gate.index}] is mostly between {low:.4g} and {high:.4g}"
        )


def _check_enough(chosen: Sequence[tuple[int, int]], labels: Sequence[FrameLabels]) -> None:
    showing = {episode for episode, row in chosen if labels[episode].shows[row]}
    others = {episode for episode, row in chosen if not labels[episode].shows[row]}
    if min(len(showing), len(others)) < FEWEST:
        raise DataError(
            f"{len(labels)} episodes, {len(showing)} of them with frames that show success and {len(others)} with "
            f"others, are too few to train on; record at least {FEWEST} of each with `robot-rl classifier record`"
        )
