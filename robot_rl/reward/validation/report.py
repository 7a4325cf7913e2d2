"""The report of labels: figures against the truth with intervals, and whether they are fit for each use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_rl.errors import DataError
from robot_rl.reward.answer import Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.preference.pairs import combine_orders
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation import figures
from robot_rl.reward.validation.beyond_a_clock import beyond_a_clock
from robot_rl.reward.validation.figures import Figure, share, with_interval
from robot_rl.reward.validation.gates import GateResult, check_gates
from robot_rl.reward.validation.ground_truth import NEAR_MISS, GroundTruth
from robot_rl.reward.validation.probability_calibration import UNCALIBRATED_THRESHOLD, Calibration
from robot_rl.reward.validation.sequential import Trials, check_sequentially, trials_of_success

LEAST_GAP = 0.01
"""Difference in true progress below which a pair has no right answer."""


@dataclass(frozen=True)
class Report:
    """Figures of labels, and the uses that they are fit for.

    Attributes:
        kind: Kind of the labels.
        labels: How many there are.
        statuses: How their answers were read.
        compared: Episodes, or pairs, that are compared with the truth.
        figures: By name.
        gates: The result for each use.
        notes: Remarks on the figures, one sentence each.
        sequential: For calibrated labels of success: the result that may be read after every episode.
    """

    kind: QueryKind
    labels: int
    statuses: Mapping[str, int]
    compared: int
    figures: Mapping[str, Figure]
    gates: Sequence[GateResult]
    notes: Sequence[str]
    sequential: GateResult | None = None


def make_report(
    kind: QueryKind,
    labels: Sequence[Label],
    truth: Mapping[str, GroundTruth],
    calibration: Calibration | None = None,
    trained_on: Sequence[str] = (),
) -> Report:
    """Compare labels with the truth.

    Args:
        kind: Kind of the labels.
        labels: Of one labeller.
        truth: By episode id.
        calibration: For success; the episodes that it was fitted to are left out.
        trained_on: Episodes that the labeller itself was trained on; they are left out, too.

    Raises:
        DataError: if there is nothing to compare.
    """
    sequential = None
    statuses = {str(status): sum(label.answer.status is status for label in labels) for status in Status}
    if kind is QueryKind.SUCCESS:
        compared, found, notes, trials = _success(labels, truth, calibration, trained_on)
        sequential = check_sequentially(trials) if calibration is not None else None
    elif kind in (QueryKind.PROGRESS, QueryKind.SCORE):
        compared, found, notes = _progress(labels, truth, trained_on)
    else:
        compared, found, notes = _preference(labels, truth)
    unreadable = statuses[Status.UNPARSABLE] + statuses[Status.REFUSED]
    found = {**found, "unreadable_rate": share(unreadable, len(labels))}
    return Report(kind, len(labels), statuses, compared, found, check_gates(kind, found), notes, sequential)


@dataclass(frozen=True, eq=False)
class SuccessColumns:
    """Labels of success beside the truth, of the episodes where both are known.

    Attributes:
        episodes: Ids, n of them.
        truth: Shape (n,), bool.
        outcome: Short name of how each went.
        probability: From the labels, shape (n,); NaN where the answer has no value.
    """

    episodes: tuple[str, ...]
    truth: np.ndarray
    outcome: tuple[str, ...]
    probability: np.ndarray


def success_columns(
    labels: Sequence[Label], truth: Mapping[str, GroundTruth], without: Sequence[str] = ()
) -> SuccessColumns:
    """Return labels of success beside the truth; episodes in `without` are left out.

    Raises:
        DataError: if no episode with a label has a known outcome.
    """
    rows = []
    for label in labels:
        name = str(label.subject[0]["episode_id"])
        known = truth.get(name)
        if known is not None and known.success is not None and name not in set(without):
            value = label.answer.values[0] if label.answer.status is Status.OK else math.nan
            rows.append((name, known.success, known.outcome, value))
    if not rows:
        raise DataError(
            "no episode with a label has a known outcome to compare with; give a CSV file of episode_id,success with "
            "--truth" + (", or label more than was used for the calibration" if without else "")
        )
    return SuccessColumns(
        episodes=tuple(row[0] for row in rows),
        truth=np.array([row[1] for row in rows], bool),
        outcome=tuple(row[2] for row in rows),
        probability=np.array([row[3] for row in rows], float),
    )


def _success(
    labels: Sequence[Label],
    truth: Mapping[str, GroundTruth],
    calibration: Calibration | None,
    trained_on: Sequence[str],
) -> tuple[int, dict[str, Figure], list[str], dict[str, Trials]]:
    columns = success_columns(labels, truth, (*trained_on, *(calibration.fitted_to if calibration else ())))
    happened, known = columns.truth, np.isfinite(columns.probability)
    probability = np.where(known, columns.probability, 0.0)
    threshold = UNCALIBRATED_THRESHOLD
    if calibration is not None:
        probability, threshold = np.where(known, calibration(probability), 0.0), calibration.threshold
    positive = known & (probability >= threshold)
    failures = int((~happened).sum())
    false_rate = share(int((positive & ~happened).sum()), failures)
    near = np.array([outcome == NEAR_MISS for outcome in columns.outcome]) & ~happened
    count, sure = len(happened), float(calibration is not None)
    at_70 = _threshold_at_recall(happened, probability, 0.7)
    found = {
        "calibrated": Figure(sure, sure, sure),
        "roc_auc": with_interval(lambda i: figures.roc_auc(happened[i], probability[i]), count),
        "average_precision": with_interval(lambda i: figures.average_precision(happened[i], probability[i]), count),
        "precision": share(int((positive & happened).sum()), int(positive.sum())),
        "recall": share(int((positive & happened).sum()), int(happened.sum())),
        "false_positives_per_100_failures": Figure(*(100.0 * value for value in false_rate)),
        "near_miss_false_positive_rate": share(int((positive & near).sum()), int(near.sum())),
        "precision_at_70_percent_recall": share(
            int((happened & (probability >= at_70)).sum()), int((probability >= at_70).sum())
        ),
        "calibration_error": with_interval(
            lambda i: figures.calibration_error(happened[i][known[i]], probability[i][known[i]]), count
        ),
        "brier": with_interval(lambda i: figures.brier(happened[i][known[i]], probability[i][known[i]]), count),
        "without_value": share(int((~known).sum()), count),
    }
    for outcome in sorted({o for o, h in zip(columns.outcome, happened, strict=True) if o and not h}):
        of = np.array([o == outcome for o in columns.outcome]) & ~happened
        found[f"false_positive_rate.{outcome}"] = share(int((positive & of).sum()), int(of.sum()))
    notes = [f"a success is a probability of at least {threshold:.3g}; an answer without a value counts as none"]
    if calibration is None:
        notes.append("not calibrated: `robot-rl label calibrate` fits probability and threshold on known outcomes")
    else:
        notes.append(f"the {len(calibration.fitted_to)} episodes of the calibration are left out")
    return count, found, notes + _left_out(trained_on), trials_of_success(happened, near, probability, positive)


def _threshold_at_recall(truth: np.ndarray, probability: np.ndarray, wanted: float) -> float:
    """Return the largest threshold that at least this share of the successes reaches."""
    if not truth.any():
        return math.inf
    reached = np.sort(probability[truth])[::-1]
    return float(reached[math.ceil(wanted * len(reached)) - 1])


def _progress(
    labels: Sequence[Label], truth: Mapping[str, GroundTruth], trained_on: Sequence[str]
) -> tuple[int, dict[str, Figure], list[str]]:
    rows, steps, known_episodes = [], [], set(trained_on)
    for label in labels:
        clip = label.subject[0]
        name = str(clip["episode_id"])
        known = None if name in known_episodes else truth.get(name)
        if known is not None and known.success is not None and label.answer.status is Status.OK:
            real = known.progress[list(clip["rows"])] if known.progress is not None else None
            rows.append((known.success, np.array(label.answer.values), real))
            steps.append(np.array(clip["rows"]))
    if not rows:
        raise DataError("no episode with a readable label has a known outcome to compare with; see --truth")
    success = np.array([row[0] for row in rows])
    order = np.array([figures.value_order_correlation(values) for _, values, _ in rows])
    final = np.array([values[-1] for _, values, _ in rows])
    found = {
        "voc_of_successes": with_interval(lambda i: _mean(order[i][success[i]]), len(rows)),
        "voc_of_failures": with_interval(lambda i: _mean(order[i][~success[i]]), len(rows)),
        "final_gap": with_interval(lambda i: _mean(final[i][success[i]]) - _mean(final[i][~success[i]]), len(rows)),
        "beyond_a_clock": beyond_a_clock(success, steps, [values for _, values, _ in rows]),
        "roc_auc_of_final": with_interval(lambda i: figures.roc_auc(success[i], final[i]), len(rows)),
    }
    notes = ["VOC is 1 for a clock, too: it is no measure of success"]
    with_real = [(values, real) for _, values, real in rows if real is not None]
    if with_real:
        ranks = np.array([figures.rank_correlation(values, real) for values, real in with_real])
        error = np.array([np.abs(values - real).mean() for values, real in with_real])
        found["rank_correlation_to_truth"] = with_interval(lambda i: _mean(ranks[i]), len(ranks))
        clock = np.array([figures.rank_correlation(np.arange(len(real)), real) for _, real in with_real])
        found["rank_correlation_of_a_clock"] = with_interval(lambda i: _mean(clock[i]), len(clock))
        found["mean_absolute_error"] = with_interval(lambda i: _mean(error[i]), len(error))
    else:
        notes.append("the true progress is not known; an overlay with it can be named with --progress")
    return len(rows), found, notes + _left_out(trained_on)


def _preference(labels: Sequence[Label], truth: Mapping[str, GroundTruth]) -> tuple[int, dict[str, Figure], list[str]]:
    known = combine_orders(labels)
    flipped = sum(pair.flipped for pair in known.pairs)
    found = {
        "flip_rate": share(flipped, len(known.pairs)),
        "tie_rate": share(sum(pair.value == 0.5 and not pair.flipped for pair in known.pairs), len(known.pairs)),
        "skip_rate": share(known.skipped, len(known.pairs) + known.skipped),
    }
    compared = []
    for pair in known.pairs:
        real = [truth[name].progress if name in truth else None for name, _ in (pair.first, pair.second)]
        if real[0] is not None and real[1] is not None:
            gap = float(real[0][pair.first[1]] - real[1][pair.second[1]])
            if abs(gap) >= LEAST_GAP and pair.value != 0.5:
                compared.append((abs(gap), (pair.value > 0.5) == (gap > 0)))
    notes = ["a pair whose two orders contradict each other is a tie; one that could not be read is skipped"]
    if compared:
        right = np.array([correct for _, correct in sorted(compared, key=lambda row: row[0])])
        found["accuracy"] = share(int(right.sum()), len(right))
        for name, part in zip(("smallest", "middle", "largest"), np.array_split(right, 3), strict=True):
            found[f"accuracy_{name}_gaps"] = share(int(part.sum()), len(part))
    else:
        notes.append("the true progress is not known, and so neither is the accuracy; see --progress")
    if known.incomplete:
        notes.append(f"{known.incomplete} pairs have an answer in one order only, so far")
    return len(known.pairs), found, notes


def _left_out(trained_on: Sequence[str]) -> list[str]:
    return [f"the {len(trained_on)} episodes that the labeller was trained on are left out"] if trained_on else []


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan
