"""What the runs of a suite show together: interquartile means with bootstrap intervals, a table, a page.

Success rates are between 0 and 1; a return may be below, and above what the suite calls the best. Their aggregates are
those of Agarwal 2021 ("Statistical Precipice"): the interquartile mean over all tasks and seeds, the stratified
bootstrap, the performance profile, and the interquartile mean over env steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.bench.jobs import FailedJob
from robot_rl.bench.suite.definition import Suite
from robot_rl.bench.suite.runs import SuiteRun
from robot_rl.statistics import bootstrap_interval, interquartile_mean
from robot_rl.system.atomic_file import write_atomically

GRID = 21
"""Points of the curve over env steps."""
THRESHOLDS = 1001
"""Of the performance profile: fine enough to tell runs apart that all succeed nearly always."""


@dataclass(frozen=True)
class SuiteResult:
    """Scores of all finished runs.

    Attributes:
        suite: The suite.
        scores: Final score of each seed, by task.
        curves: For each task, for each seed, env steps and scores of its learning curve.
        minutes: Wall time of each run, by task [min].
        unscored: Tasks whose runs are finished and have no score: nothing succeeds there, and the suite has no
            `best_return`. They are in none of the others.
    """

    suite: Suite
    scores: Mapping[str, Sequence[float]]
    curves: Mapping[str, Sequence[Sequence[tuple[int, float]]]]
    minutes: Mapping[str, Sequence[float]]
    unscored: tuple[str, ...] = ()

    @classmethod
    def of(cls, suite: Suite, runs: Sequence[SuiteRun]) -> SuiteResult:
        """Read the results of the finished runs."""
        best = suite.best_return
        value, scale = ("success_rate", 1.0) if best is None else ("return_mean", best)
        scores: dict[str, list[float]] = {}
        curves: dict[str, list[list[tuple[int, float]]]] = {}
        minutes: dict[str, list[float]] = {}
        unscored: dict[str, None] = {}  # in order
        for run in runs:
            if run.finished:
                summary = run.summary()
                if summary[value] is None:
                    unscored[run.task] = None
                    continue
                scores.setdefault(run.task, []).append(summary[value] / scale)
                minutes.setdefault(run.task, []).append(summary["wall_s"] / 60.0)
                points = [(step, point / scale) for step, point in run.curve(value)]
                curves.setdefault(run.task, []).append(points)
        return cls(suite, scores, curves, minutes, tuple(unscored))

    def summary(self) -> dict[str, Any]:
        """Return the aggregates, for a program; None where nothing is finished."""
        if not self.scores:
            empty = {"suite": self.suite.name, "runs": 0, "iqm": None, "iqm_ci95": None, "mean": None, "tasks": {}}
            return {**empty, "unscored": list(self.unscored)}
        strata = list(self.scores.values())
        task_ends = np.cumsum([len(scores) for scores in strata])[:-1]

        def task_mean(row: np.ndarray) -> float:  # of the mean of each task, as some runs may have failed
            return float(np.mean([np.mean(scores) for scores in np.split(row, task_ends)]))

        every = np.concatenate([np.asarray(scores) for scores in strata])
        return {
            "suite": self.suite.name,
            "runs": len(every),
            "iqm": interquartile_mean(every),
            "iqm_ci95": list(bootstrap_interval(strata)),
            "mean": task_mean(every),
            "mean_ci95": list(bootstrap_interval(strata, task_mean)),
            "tasks": {
                task: {"scores": list(scores), "mean": float(np.mean(scores)), "minutes": list(self.minutes[task])}
                for task, scores in self.scores.items()
            },
            "unscored": list(self.unscored),
        }

    def remarks(self) -> list[str]:
        """Return a line for each task without a score, with the cure."""
        cure = "nothing succeeds there, so give the suite best_return, the return that scores 1"
        return [f"{task}: not scored: {cure}" for task in self.unscored]

    def over_steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return env steps, the interquartile mean of all runs there, and its interval, shapes (G,), (G,), (G, 2)."""
        curves = [[curve for curve in seeds if curve] for seeds in self.curves.values()]
        curves = [seeds for seeds in curves if seeds]
        if not curves:
            return np.zeros(0), np.zeros(0), np.zeros((0, 2))
        every = [curve for seeds in curves for curve in seeds]
        grid = np.linspace(max(curve[0][0] for curve in every), min(curve[-1][0] for curve in every), GRID)
        values = [np.stack([_at(grid, curve) for curve in seeds]) for seeds in curves]
        middle = [interquartile_mean(np.concatenate([task[:, g] for task in values])) for g in range(GRID)]
        bands = [bootstrap_interval([task[:, g] for task in values], resamples=500) for g in range(GRID)]
        return grid, np.array(middle), np.array(bands)

    def profile(self) -> tuple[np.ndarray, np.ndarray]:
        """Return thresholds, and the share of runs whose score is above each, both of shape (G,)."""
        every = np.concatenate([np.asarray(scores) for scores in self.scores.values()])
        thresholds = np.linspace(min(0.0, every.min()), max(1.0, every.max()), THRESHOLDS)
        return thresholds, np.array([(every > threshold).mean() for threshold in thresholds])


def page(result: SuiteResult, failures: Sequence[FailedJob[SuiteRun]], command: str) -> str:
    """Return the report as Markdown."""
    summary, suite = result.summary(), result.suite
    lines = [f"# {suite.title}", "", f"Command: `{command}`", ""]
    if summary["iqm"] is not None:
        score = "success rate" if suite.best_return is None else f"return / {suite.best_return:g}"
        iqm, mean = (_with_interval(summary[name], summary[f"{name}_ci95"]) for name in ("iqm", "mean"))
        lines += [
            f"Score: {score}. {summary['runs']} runs. Interquartile mean **{iqm}**, mean {mean} (95 % stratified "
            "bootstrap).",
            "",
            "![Score over env steps, and performance profile](suite.png)",
            "",
            "| task | mean | seeds | minutes |",
            "|---|---|---|---|",
        ]
        for task, row in summary["tasks"].items():
            seeds = " ".join(f"{score:.2f}" for score in row["scores"])
            lines.append(f"| {task} | {row['mean']:.2f} | {seeds} | {np.mean(row['minutes']):.0f} |")
        lines.append("")
    lines += [f"- {note}" for note in (*suite.notes, *result.remarks())]
    if failures:
        lines += ["", "Without a result:", ""]
        lines += [f"- {failure}" for failure in failures]
    return "\n".join(lines) + "\n"


def write_page(result: SuiteResult, failures: Sequence[FailedJob[SuiteRun]], command: str, out: Path) -> Path:
    """Write the report `report.md` and its picture; return the path of the page.

    Raises:
        RunDirectoryError: if they cannot be written.
    """
    if result.scores:
        from robot_rl.viz.suite_plot import suite_plot  # here, as matplotlib takes half a second to import

        suite_plot(result.over_steps(), result.profile(), out / "suite.png", title=result.suite.title)
    path = out / "report.md"
    write_atomically(path, page(result, failures, command))
    return path


def _at(grid: np.ndarray, curve: Sequence[tuple[int, float]]) -> np.ndarray:
    """Return a curve at env steps (G,), interpolated; shape (G,)."""
    points = np.asarray(curve, dtype=float)
    return np.interp(grid, points[:, 0], points[:, 1])


def _with_interval(value: float, interval: Sequence[float]) -> str:
    return f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
