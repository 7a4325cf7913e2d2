"""The report of a reward classifier: figures of recorded episodes, evaluated as they would have been live.

`report_plot` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from robot_rl.errors import DataError
from robot_rl.reward.classifier.classifier import FrameScorer, RewardClassifier, debounced_to_the_end, first_at_least
from robot_rl.reward.classifier.frames import LabelledEpisode
from robot_rl.reward.classifier.physical_gate import all_open
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation import figures
from robot_rl.reward.validation.figures import Figure, share, with_interval
from robot_rl.reward.validation.gates import ENDING_EPISODES, GATES, Condition, GateResult, check_conditions
from robot_rl.reward.validation.ground_truth import NEAR_MISS

USE = "ending episodes"
MOST_DELAY = 5.0
"""From the success to its detection, 95th percentile [steps]."""
CONDITIONS = (
    *(one for one in GATES[QueryKind.SUCCESS][ENDING_EPISODES] if one.figure != "recall"),
    Condition("recall", at_least=0.90),
    Condition("delay_steps", at_most=MOST_DELAY),
)
"""Conditions for ending episodes: more recall than for labels, because an episode that it misses goes on."""


@dataclass(frozen=True, eq=False)
class EvaluatedEpisode:
    """An episode with the output of the classifier; row t is observation t.

    Attributes:
        episode_id: Its name.
        store: Where it is.
        outcome: Short name of how it went, e.g. `near_miss`; empty if it is not known.
        shows: Which frames show success, shape (T + 1,).
        logits: Of each camera, shape (T + 1, cameras).
        probability: Shape (T + 1,).
        open: Whether the gates are, shape (T + 1,).
        score: Least probability of the last frames, 0 where a gate was closed, shape (T + 1,).
        fired: Frame at which the classifier would have ended it as a success; None if it would not.
    """

    episode_id: str
    store: Path
    outcome: str
    shows: np.ndarray
    logits: np.ndarray
    probability: np.ndarray
    open: np.ndarray
    score: np.ndarray
    fired: int | None

    @property
    def success(self) -> bool:
        """Whether it really was one."""
        return bool(self.shows.any())

    @property
    def right(self) -> bool:
        """Whether the classifier would have ended it at a moment of success."""
        return _is_right(self.shows, self.fired)


Column = Callable[[EvaluatedEpisode], np.ndarray]
"""A column of an episode, one value for each frame."""


@dataclass(frozen=True)
class ClassifierReport:
    """Figures of a classifier, and whether it may end episodes.

    Attributes:
        episodes: With the output of the classifier.
        figures: By name.
        gate: Whether it may end episodes, and why not.
        notes: Remarks on the figures, one sentence each.
    """

    episodes: Sequence[EvaluatedEpisode]
    figures: Mapping[str, Figure]
    gate: GateResult
    notes: Sequence[str]


def evaluate_episodes(
    classifier: RewardClassifier,
    labelled: Iterable[LabelledEpisode],
    *,
    on_episode: Callable[[int], object] = lambda done: None,
) -> tuple[list[EvaluatedEpisode], int]:
    """Evaluate the episodes that the classifier was not trained on; return them and the number of the others.

    Raises:
        DataError: if frames are missing, or it has been trained on all of them.
    """
    reader, known = FrameScorer(classifier), set(classifier.trained_on)
    evaluated, skipped = [], 0
    for number, one in enumerate(labelled):
        if one.fingerprint in known:
            skipped += 1
        else:
            evaluated.append(_evaluate(reader, one))
        on_episode(number + 1)
    if not evaluated:
        raise DataError(
            f"there are no episodes to evaluate it on: the classifier was trained on all {skipped}; record others with "
            "another --seed"
        )
    return evaluated, skipped


def _evaluate(reader: FrameScorer, one: LabelledEpisode) -> EvaluatedEpisode:
    classifier, observations = reader.classifier, one.episode.observations
    logits = reader.logits(observations)
    probability = classifier.probability(logits)
    is_open = all_open(classifier.gates, observations, len(logits))
    return EvaluatedEpisode(
        one.episode.episode_id,
        one.store,
        one.episode.facts.outcome,
        one.shows,
        logits,
        probability,
        is_open,
        *_ended(classifier, one.shows, probability * is_open),
    )


def _is_right(shows: np.ndarray, fired: int | None) -> bool:
    """Return whether there was a success where it would have ended; after its last frame nothing changes."""
    return fired is not None and bool(shows[min(fired, len(shows) - 1)])


def _ended(classifier: RewardClassifier, shows: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Return the debounced score, and where it ends the episode."""
    found = debounced_to_the_end(score, shows, classifier.consecutive)
    return found, first_at_least(found, classifier.threshold)


def make_classifier_report(
    classifier: RewardClassifier, episodes: Sequence[EvaluatedEpisode], skipped: int = 0
) -> ClassifierReport:
    """Compute figures with 95 % intervals by episode, and check the gate.

    Args:
        classifier: The classifier.
        episodes: From `evaluate_episodes`.
        skipped: How many were left out because it was trained on them.
    """
    found = {"calibrated": Figure(1.0, 1.0, 1.0), **_figures(classifier, episodes)}
    notes = [
        "an episode counts as right only if the success was there in the very frame in which it would have been ended",
        "heads were trained on other episodes" + (f"; {skipped} that they knew were left out" if skipped else ""),
    ]
    if classifier.gates and all(
        found[f"{name}.gate_alone"].value >= found[name].value for name in ("precision", "recall")
    ):
        notes.append("the gates alone would do as well on these episodes: here the pictures add nothing to them")
    gate = check_conditions(USE, CONDITIONS, found, _causes(classifier, episodes, found))
    return ClassifierReport(episodes, found, gate, notes)


def _figures(classifier: RewardClassifier, episodes: Sequence[EvaluatedEpisode]) -> dict[str, Figure]:
    success = np.array([one.success for one in episodes])
    near = np.array([one.outcome == NEAR_MISS for one in episodes]) & ~success
    fired = np.array([one.fired is not None for one in episodes])
    best, count = np.array([one.score.max() for one in episodes]), len(episodes)
    found = _outcomes("", success, fired, np.array([one.right for one in episodes]))
    found["near_miss_false_positive_rate"] = share(int((fired & near).sum()), int(near.sum()))
    for outcome in sorted({one.outcome for one in episodes if one.outcome and not one.success}):
        of = np.array([one.outcome == outcome for one in episodes]) & ~success
        found[f"false_positive_rate.{outcome}"] = share(int((fired & of).sum()), int(of.sum()))
    delays = np.array([(one.fired or 0) - int(np.argmax(one.shows)) for one in episodes if one.right])
    found["delay_steps"] = with_interval(lambda i: float(np.percentile(delays[i], 95)), len(delays))
    found["roc_auc"] = with_interval(lambda i: figures.roc_auc(success[i], best[i]), count)
    found["average_precision"] = with_interval(lambda i: figures.average_precision(success[i], best[i]), count)

    probability: Column = lambda one: one.probability  # noqa: E731
    found["calibration_error"] = _of_frames(episodes, figures.calibration_error, probability)
    found["frame_roc_auc"] = _of_frames(episodes, figures.roc_auc, probability)
    for index, camera in enumerate(classifier.heads):
        if camera in classifier.cameras:
            logit = partial(_logit, index)
            found[f"frame_roc_auc.{camera}"] = _of_frames(episodes, figures.roc_auc, logit)
    if classifier.gates:  # what either part brings
        parts: dict[str, Column] = {"pictures_alone": probability, "gate_alone": lambda one: one.open.astype(float)}
        for name, column in parts.items():
            ended = [_ended(classifier, one.shows, column(one))[1] for one in episodes]
            right = [_is_right(one.shows, at) for one, at in zip(episodes, ended, strict=True)]
            found |= _outcomes(f".{name}", success, np.array([at is not None for at in ended]), np.array(right))
    return found


def _of_frames(
    episodes: Sequence[EvaluatedEpisode], statistic: Callable[[np.ndarray, np.ndarray], float], column: Column
) -> Figure:
    """Compute a figure of all frames; its interval is by episode."""

    def of(chosen: np.ndarray) -> float:
        drawn = [episodes[index] for index in chosen]
        return statistic(np.concatenate([one.shows for one in drawn]), np.concatenate([column(one) for one in drawn]))

    return with_interval(of, len(episodes), resamples=200)


def _logit(camera: int, one: EvaluatedEpisode) -> np.ndarray:
    return one.logits[:, camera]


def _outcomes(suffix: str, success: np.ndarray, fired: np.ndarray, right: np.ndarray) -> dict[str, Figure]:
    """Compute precision, recall, false positives among failures, and premature ends among successes."""
    failures = int((~success).sum())
    false_rate = share(int((fired & ~success).sum()), failures)
    return {
        f"precision{suffix}": share(int(right.sum()), int(fired.sum())),
        f"recall{suffix}": share(int((right & success).sum()), int(success.sum())),
        f"false_positives_per_100_failures{suffix}": Figure(*(100.0 * value for value in false_rate)),
        f"premature_rate{suffix}": share(int((fired & success & ~right).sum()), int(success.sum())),
    }


def _frames_early(one: EvaluatedEpisode) -> int:
    """Return the frames from where it would have ended to its next success, or to its end without one."""
    fired = one.fired or 0
    later = np.flatnonzero(one.shows[fired:])
    return int(later[0]) if len(later) else len(one.shows) - fired


def _causes(
    classifier: RewardClassifier, episodes: Sequence[EvaluatedEpisode], found: Mapping[str, Figure]
) -> list[str]:
    """Return probable reasons for poor figures, for people; empty if nothing stands out."""
    causes = []
    auc = found["frame_roc_auc"].value
    if auc < 0.5:
        causes.append("it contradicts these labels: success and failure were mixed up, here or in training")
    elif auc < 0.9:
        causes.append(
            "success and failure hardly differ in single frames: other task, view or light than in training, or "
            "wrong labels"
        )
    of_cameras = {camera: found[f"frame_roc_auc.{camera}"].value for camera in classifier.cameras}
    blind = {camera: value for camera, value in of_cameras.items() if value < 0.9 and auc >= 0.5}
    causes += [f"camera {camera} does not see it (frame AUC {value:.2f})" for camera, value in blind.items()]
    wrong = [one for one in episodes if one.fired is not None and not one.right]
    if wrong:
        early = [_frames_early(one) for one in wrong if one.success]
        parts = [f"{len(early)} that succeed later, {np.median(early):.0f} frames too early (median)"] if early else []
        kinds = sorted({one.outcome or "failure" for one in wrong if not one.success})
        parts += [f"{sum((o.outcome or 'failure') == k and not o.success for o in wrong)} of {k}" for k in kinds]
        called = "1 episode was" if len(wrong) == 1 else f"{len(wrong)} episodes were"
        causes.append(
            f"{called} called a success at a moment that was none: {', '.join(parts)}; the pictures show what deceives "
            "it; train with these, raise --consecutive, or give a --gate"
        )
    if found["delay_steps"].value > MOST_DELAY:
        causes.append(
            "it is late: successes differ from near misses only some steps on; a --gate that near misses do not pass "
            "lets the threshold be lower"
        )
    missed = [one for one in episodes if one.success and one.fired is None]
    expected = classifier.facts.get("held_out_success_probability", math.nan)
    if missed and found["recall"].value < 0.8:
        median = float(np.median([one.score.max() for one in episodes if one.success]))
        causes.append(
            f"{len(missed)} successes were missed: their frames reach p = {median:.2f} (median), the threshold is "
            f"{classifier.threshold:.2f}, and in training they reached {expected:.2f}"
        )
    return causes
