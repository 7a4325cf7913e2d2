"""The report of a reward classifier as a picture: result, curves, and the frames that deceive it most."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.classifier.classifier import RewardClassifier
from robot_rl.reward.classifier.report import ClassifierReport, EvaluatedEpisode
from robot_rl.reward.validation import figures
from robot_rl.reward.validation.gates import Fitness
from robot_rl.system.atomic_file import writing
from robot_rl.viz.learning_curve import BLACK, BLUE, GREEN, ORANGE

SHOWN = 8
"""Pictures of false positives, and of missed successes."""
COLOURS = {Fitness.FIT: GREEN, Fitness.NOT_SHOWN: "#9A6700", Fitness.UNFIT: ORANGE}
LISTED = (
    ("precision", "episodes called a success that are one"),
    ("recall", "successes that are found"),
    ("false_positives_per_100_failures", "of 100 failures, called a success"),
    ("near_miss_false_positive_rate", "near misses called a success"),
    ("premature_rate", "successes ended before they were one"),
    ("roc_auc", "ROC-AUC of episodes"),
    ("frame_roc_auc", "ROC-AUC of frames"),
    ("calibration_error", "calibration error of frames"),
    ("delay_steps", "delay, 95th percentile [steps]"),
)


def draw_report(classifier: RewardClassifier, report: ClassifierReport, path: Path) -> None:
    """Write the page as PNG.

    Raises:
        RunDirectoryError: if it cannot be written.
        DataError: if a frame cannot be read again.
    """
    page = Figure(figsize=(13, 15.5), layout="constrained")
    parts: Any = page.subfigures(5, 1, height_ratios=(1.45, 2.6, 2.6, 1.9, 1.9))
    head, top, bottom, wrong, missed = parts
    _headline(head, classifier, report)
    roc, pr, reliability = top.subplots(1, 3)
    scores, table = bottom.subplots(1, 2, width_ratios=(1, 1.35))
    _roc(roc, report)
    _precision_recall(pr, classifier, report)
    _reliability(reliability, report.episodes)
    _scores(scores, classifier, report.episodes)
    _table(table, report)
    _pictures(wrong, classifier, _worst(report.episodes), "What deceives it most: no success, but the highest p")
    _pictures(missed, classifier, _least_sure(report.episodes), "Successes of which it is least sure")
    FigureCanvasAgg(page)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        page.savefig(path, dpi=80, format="png")


def _headline(part: SubFigure, classifier: RewardClassifier, report: ClassifierReport) -> None:
    gate, success = report.gate, sum(one.success for one in report.episodes)
    axes = part.subplots()
    axes.axis("off")
    axes.text(0, 1, str(gate), fontsize=21, fontweight="bold", color=COLOURS[gate.fitness], va="top")
    gates = "".join(f", and {gate}" for gate in classifier.gates)
    lines = [
        f"{classifier.task}: {len(report.episodes)} episodes that it has not seen, {success} successes. A success is "
        f"p >= {classifier.threshold:.3f} in {classifier.consecutive} frames running{gates}.",
        *(f"not met: {text}" for text in gate.failed),
        *(f"probably: {text}" for text in gate.causes),
        *(f"not sure: {text}" for text in gate.unsure),
    ]
    axes.text(0, 0.72, "\n".join(_wrapped(lines, 150)), fontsize=10.5, va="top", linespacing=1.35)


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="    ")]


def _roc(axes: Axes, report: ClassifierReport) -> None:
    success = np.array([one.success for one in report.episodes])
    best = np.array([one.score.max() for one in report.episodes])
    shows = np.concatenate([one.shows for one in report.episodes])
    p = np.concatenate([one.probability for one in report.episodes])
    for truth, score, colour, name in ((success, best, BLUE, "episodes"), (shows, p, GREEN, "frames")):
        false, true = _curve(truth, score)
        auc = figures.roc_auc(truth, score)
        axes.plot(false, true, color=colour, linewidth=1.8, label=f"{name}, AUC {auc:.3f}")
    axes.plot([0, 1], [0, 1], ":", color="0.6", linewidth=1, label="a guess")
    _style(axes, "ROC", "false positive rate", "true positive rate")
    axes.legend(loc="lower right", frameon=False)


def _curve(truth: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)  # ties go together
    true, false = np.cumsum(truth[order])[last], np.cumsum(~truth[order])[last]
    return np.append(0, false / max(1, false[-1])), np.append(0, true / max(1, true[-1]))


def _precision_recall(axes: Axes, classifier: RewardClassifier, report: ClassifierReport) -> None:
    success = np.array([one.success for one in report.episodes])
    best = np.array([one.score.max() for one in report.episodes])
    order = np.argsort(-best, kind="stable")
    hits = np.cumsum(success[order])
    if hits[-1]:
        axes.plot(hits / hits[-1], hits / np.arange(1, len(hits) + 1), color=BLUE, linewidth=1.8, label="by threshold")
    precision, recall = report.figures["precision"], report.figures["recall"]
    axes.errorbar(
        recall.value, precision.value, xerr=_bars(recall), yerr=_bars(precision),
        fmt="o", color=ORANGE, capsize=3, label=f"as it ends episodes, p >= {classifier.threshold:.2f}",
    )  # fmt: skip
    axes.axhline(0.98, color="0.6", linewidth=1, linestyle=":", label="what the gate demands")
    axes.axvline(0.90, color="0.6", linewidth=1, linestyle=":")
    _style(axes, "Precision and recall of episodes", "recall", "precision")
    axes.legend(loc="lower left", frameon=False)


def _bars(figure: figures.Figure) -> np.ndarray:
    return np.nan_to_num(np.array([[figure.value - figure.low], [figure.high - figure.value]])).clip(0)


def _reliability(axes: Axes, episodes: Sequence[EvaluatedEpisode]) -> None:
    shows = np.concatenate([one.shows for one in episodes])
    p = np.concatenate([one.probability for one in episodes])
    place = np.minimum((10 * p).astype(int), 9)
    bins = [b for b in range(10) if (place == b).any()]
    axes.plot([0, 1], [0, 1], ":", color="0.6", linewidth=1, label="as it should be")
    found = [p[place == b].mean() for b in bins], [shows[place == b].mean() for b in bins]
    axes.plot(*found, "o-", color=BLUE, label="frames, by tenths of the probability")
    for b in bins:
        count = int((place == b).sum())
        at = p[place == b].mean(), shows[place == b].mean()
        below = at[1] > 0.5
        axes.annotate(f"{count}", at, (0, -13 if below else 7), textcoords="offset points", ha="center", fontsize=8)
    _style(axes, "Reliability of frames (with their number)", "probability it gives", "share that shows success")
    axes.legend(loc="upper left", frameon=False)


def _scores(axes: Axes, classifier: RewardClassifier, episodes: Sequence[EvaluatedEpisode]) -> None:
    kinds = sorted({_kind(one) for one in episodes}, key=lambda kind: (kind == "success", kind))
    rng = np.random.default_rng(0)
    for row, kind in enumerate(kinds):
        best = np.array([one.score.max() for one in episodes if _kind(one) == kind])
        colour = GREEN if kind == "success" else BLACK
        axes.plot(best, row + rng.uniform(-0.28, 0.28, len(best)), "o", color=colour, markersize=3.5, alpha=0.55)
    axes.axvline(classifier.threshold, color=ORANGE, linewidth=1.6, label="threshold")
    axes.set_yticks(range(len(kinds)), [f"{k} ({sum(_kind(o) == k for o in episodes)})" for k in kinds])
    _style(axes, "Highest p of each episode, by how it went", f"p of {classifier.consecutive} frames running", "")
    axes.set_ylim(-0.6, len(kinds) - 0.4)
    axes.legend(loc="lower center", frameon=False)


def _kind(one: EvaluatedEpisode) -> str:
    return "success" if one.success else one.outcome or "failure"


def _table(axes: Axes, report: ClassifierReport) -> None:
    axes.axis("off")
    found: Mapping[str, figures.Figure] = report.figures
    extra = [key for key in found if ".pictures_alone" in key or ".gate_alone" in key]
    extra = [key for key in extra if key.startswith(("precision", "recall", "false"))]
    names = [*LISTED, *((key, key.replace("_", " ").replace(".", ", ")) for key in extra)]
    names += [(key, f"ROC-AUC of frames, {key.partition('.')[2]}") for key in found if key.startswith("frame_roc_auc.")]
    for row, (key, title) in enumerate(names):
        figure, y = found[key], 0.97 - row / (len(names) + 0.5)
        known = figure.value == figure.value
        axes.text(0.0, y, title, fontsize=10.5, va="top")
        axes.text(0.72, y, f"{figure.value:.3f}" if known else "not known", fontsize=10.5, va="top", ha="right")
        if known and figure.low == figure.low:
            axes.text(0.98, y, f"{figure.low:.3f} to {figure.high:.3f}", fontsize=10, va="top", ha="right", color="0.4")
    axes.set_title("Figures, with 95 % intervals by episode", fontsize=11, loc="left", fontweight="bold")


def _worst(episodes: Sequence[EvaluatedEpisode]) -> list[tuple[EvaluatedEpisode, int]]:
    """Return of each episode the frame without success of the highest p; the worst of them."""
    rows = []
    for one in episodes:
        p = np.where(one.shows, -1.0, one.probability * one.open)
        rows.append((one, int(np.argmax(p)), float(p.max())))
    return [(one, row) for one, row, _ in sorted(rows, key=lambda entry: -entry[2])[:SHOWN]]


def _least_sure(episodes: Sequence[EvaluatedEpisode]) -> list[tuple[EvaluatedEpisode, int]]:
    """Return the frame of the highest p, of the successes with the lowest scores."""
    found = sorted((one for one in episodes if one.success), key=lambda one: one.score.max())[:SHOWN]
    return [(one, int(np.argmax(np.where(one.shows, one.probability * one.open, -1.0)))) for one in found]


def _pictures(
    part: SubFigure,
    classifier: RewardClassifier,
    chosen: Sequence[tuple[EvaluatedEpisode, int]],
    title: str,
) -> None:
    part.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left")
    for axes, entry in zip(part.subplots(1, SHOWN), [*chosen, *[None] * (SHOWN - len(chosen))], strict=True):
        axes.axis("off")
        if entry is None:
            continue
        one, row = entry
        with EpisodeStore.open(one.store) as store:
            observations = store.read(one.episode_id).observations
        axes.imshow(np.concatenate([observations[IMAGE_PREFIX + camera][row] for camera in classifier.cameras]))
        ended = " ended here" if one.fired == row else ""
        axes.set_title(
            f"p {one.probability[row]:.3f}{ended}\n{one.episode_id}\nframe {row}, {_kind(one)}", fontsize=7.5
        )


def _style(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
