"""What a sweep shows: its table, importance and picture, and the best settings beside the defaults on other seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.bench.suite.definition import Suite
from robot_rl.bench.suite.report import SuiteResult
from robot_rl.bench.suite.runs import SuiteRun, run_path
from robot_rl.config.load import config_to_dict
from robot_rl.config.yaml_file import dump_yaml
from robot_rl.sweep.sampler import importance
from robot_rl.sweep.space import Range, ValueList
from robot_rl.sweep.sweep import Sweep
from robot_rl.system.atomic_file import write_atomically

REPORT, PICTURE, BEST = "report.md", "sweep.png", "best.yaml"


def summary(sweep: Sweep) -> dict[str, Any]:
    """Return the result of a sweep, for a program."""
    best = sweep.best()
    return {
        "task": sweep.task,
        "trials": sweep.table(),
        "tuning_seeds": list(sweep.seeds),
        "importance": importance(sweep.space, sweep.scored(), sweep.seed),
        "best": None if best is None else dict(zip(("trial", "settings", "score"), best, strict=True)),
        "failed": sweep.failed,
    }


def write_report(sweep: Sweep, answer: Mapping[str, Any], command: str) -> Path:
    """Write `report.md`, `sweep.png` and, where there is one, `best.yaml`, settings for `robot-rl train --config`.

    Args:
        sweep: The sweep.
        answer: Of `summary`; with the key `test`, of `tested`, the comparison on other seeds is part of the report.
        command: That made it.

    Raises:
        RunDirectoryError: if a file cannot be written.
    """
    from robot_rl.viz.sweep_plot import sweep_plot  # here, as matplotlib takes half a second to import

    rows = sweep.table()
    points = [sorted(row["scores"].items()) for row in rows]
    axes = sweep.space.axes
    coordinates = np.array([[_place(axis, row["settings"][key]) for key, axis in axes.items()] for row in rows])
    ticks = [(key, *_ends(axis)) for key, axis in axes.items()]
    seeds = "one tuning seed" if len(sweep.seeds) == 1 else f"{len(sweep.seeds)} tuning seeds"
    title = f"{sweep.task}: {len(rows)} trials, {seeds} each"
    sweep_plot(points, answer["importance"], coordinates, ticks, sweep.path / PICTURE, title=title)
    best = sweep.best()
    if best is not None:
        config = sweep.space.config(sweep.task, 0, sweep.schedule.steps, best[1])
        write_atomically(sweep.path / BEST, dump_yaml(config_to_dict(config)))
    path = sweep.path / REPORT
    write_atomically(path, _page(sweep, answer, title, command))
    return path


def test_runs(sweep: Sweep, seeds: Sequence[int]) -> dict[str, list[SuiteRun]]:
    """Return runs of the best settings and of the defaults on seeds that the sweep has not seen, by name."""
    best = sweep.best()
    if best is None:
        return {}
    arms: dict[str, tuple[str, dict[str, Any]]] = {"best": (f"best-{best[0]:03d}", best[1]), "default": ("default", {})}
    runs: dict[str, list[SuiteRun]] = {}
    for name, (folder, chosen) in arms.items():
        configs = [(seed, sweep.space.config(sweep.task, seed, sweep.schedule.steps, chosen)) for seed in seeds]
        place = sweep.path / "test" / folder
        runs[name] = [SuiteRun(sweep.task, seed, one, run_path(place, sweep.task, seed)) for seed, one in configs]
    return runs


def tested(sweep: Sweep, runs: Mapping[str, Sequence[SuiteRun]]) -> dict[str, Any]:
    """Return the interquartile mean of each, with its bootstrap interval, and the scores by seed."""
    found = {}
    for name, own in runs.items():
        suite = Suite(name, name, (sweep.task,))
        if own and own[0].finished and own[0].summary()["success_rate"] is None:
            suite = Suite(name, name, (sweep.task,), best_return=1.0)  # no success: the mean return itself
        result = SuiteResult.of(suite, own).summary()
        kept = {key: result[key] for key in ("runs", "iqm", "iqm_ci95")}
        found[name] = {**kept, "scores": result["tasks"].get(sweep.task, {}).get("scores", [])}
    return found


def _page(sweep: Sweep, answer: Mapping[str, Any], title: str, command: str) -> str:
    keys, rungs = list(sweep.space.axes), [sweep.schedule.steps_at(rung) for rung in range(sweep.schedule.rungs)]
    rows = sorted(answer["trials"], key=lambda row: (-max(row["scores"], default=0), -_last(row)))
    lines = [f"# Sweep of {title}", "", f"Command: `{command}`", ""]
    lines += [
        "Score: success rate at the end of a run, or return where nothing can succeed; mean over seeds "
        f"{', '.join(map(str, sweep.seeds))}. Suggestions: tree-structured Parzen estimator; halving by "
        f"{sweep.schedule.eta}.",
        "",
        f"![Trials, importance, settings]({PICTURE})",
        "",
        f"| trial | {' | '.join(keys)} | {' | '.join(f'{steps} steps' for steps in rungs)} |",
        "|" + "---|" * (1 + len(keys) + len(rungs)),
    ]
    for row in rows:
        settings = [_shown(row["settings"][key]) for key in keys]
        scores = [f"{row['scores'][steps]:.3f}" if steps in row["scores"] else "" for steps in rungs]
        lines.append(f"| {row['trial']} | {' | '.join(settings)} | {' | '.join(scores)} |")
    if answer["importance"]:
        lines += ["", "| setting | importance |", "|---|---|"]
        lines += [f"| {key} | {share:.2f} |" for key, share in answer["importance"].items()]
    if answer.get("test"):
        lines += ["", "On seeds that the sweep has not seen:", "", "| settings | interquartile mean (95 %) | by seed |"]
        lines.append("|---|---|---|")
        for name, row in answer["test"].items():
            low, high = row["iqm_ci95"] or (math.nan, math.nan)
            middle = math.nan if row["iqm"] is None else row["iqm"]
            seeds = " ".join(f"{score:.2f}" for score in row["scores"])
            lines.append(f"| {name} | {middle:.3f} ({low:.3f} to {high:.3f}) | {seeds} |")
    if answer["failed"]:
        lines += ["", "Without a result:", "", *(f"- {failure}" for failure in answer["failed"])]
    return "\n".join(lines) + "\n"


def _last(row: Mapping[str, Any]) -> float:
    scores = row["scores"]
    return float(scores[max(scores)]) if scores else -math.inf


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _place(axis: Range | ValueList, value: Any) -> float:
    """Return where a value stands on its axis, in [0, 1]."""
    if isinstance(axis, ValueList):
        return axis.values.index(value) / (len(axis.values) - 1)
    low, high, here = (math.log(v) if axis.log else float(v) for v in (axis.low, axis.high, value))
    return (here - low) / (high - low)


def _ends(axis: Range | ValueList) -> tuple[str, str]:
    if isinstance(axis, ValueList):
        return tuple(str(json.loads(axis.values[end])) for end in (0, -1))  # type: ignore[return-value]
    return _shown(axis.low), _shown(axis.high)
