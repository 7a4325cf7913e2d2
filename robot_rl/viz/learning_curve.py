"""Pictures of learning: one run, and runs of several seeds side by side. Drawn without pyplot's global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robot_rl.statistics import bootstrap_interval
from robot_rl.viz.png import write_png

Record = Mapping[str, Any]

WINDOW = 20
"""Episodes in a rolling mean."""

# Okabe and Ito's palette (jfly.uni-koeln.de/color), distinguishable with every common colour blindness.
BLUE, ORANGE, GREEN, PINK, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222"
_CYCLE = (BLUE, ORANGE, GREEN, PINK, BLACK, "#56B4E9", "#E69F00")
_DASHES = ("-", "--", "-.", ":")
_MARGINS = {"left": 0.075, "right": 0.975, "bottom": 0.09, "top": 0.9, "wspace": 0.36, "hspace": 0.17}
"""Around and between the four panels; to have them found would take longer than to draw the picture."""


def learning_curve(
    metrics: Sequence[Record],
    path: Path,
    *,
    title: str,
    evaluation: Record | None = None,
    demo_cycle_time_s: float | None = None,
) -> None:
    """Write a PNG of one run over env steps: success, return, intervention rate, cycle time of the successes.

    Args:
        metrics: Records of the run, as `read_metrics` gives them.
        path: The PNG.
        title: What run it is.
        evaluation: Result on held-out resets: `success_rate`, and if known `success_ci95` (low, high), `cycle_time_s`
            and `episodes`; drawn behind the last step.
        demo_cycle_time_s: Mean cycle time of the demonstrations [s].

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    episodes = [record for record in metrics if record["kind"] == "episode"]
    alone = [record for record in episodes if not record["assisted"]]
    assisted = [record for record in episodes if record["assisted"]]
    curve = [record for record in metrics if record["kind"] == "curve"]
    if evaluation is not None and evaluation["success_rate"] is None:
        _save(_returns_alone(episodes, curve, title, evaluation), path)
        return
    figure = Figure(figsize=(10, 6.4))
    figure.suptitle(title, fontweight="bold")
    success, returns, intervention, cycle = figure.subplots(2, 2, sharex=True, gridspec_kw=_MARGINS).flat

    _rolling_line(success, alone, "success", BLUE, "operator not needed")
    _rolling_line(success, assisted, "success", ORANGE, "operator helped", linestyle="--")
    for axes, name in ((success, "success_rate"), (returns, "return_mean"), (cycle, "cycle_time_s")):
        if curve:
            axes.plot(*_series(curve, name), ".-", color=GREEN, linewidth=1.4, label="on held-out resets, without help")
            _newest_line(axes, curve, name)
    _style(success, "Success", "share of episodes", limits=(-0.03, 1.03))
    _rolling_line(returns, episodes, "return", BLUE, "all episodes", raw=True)
    _style(returns, "Return", "sum of rewards")
    _rolling_line(intervention, episodes, "intervention_rate", ORANGE, "all episodes", raw=True)
    _style(intervention, "Intervention", "share of steps by the operator", limits=(-0.03, 1.03))
    _effort_line(intervention, episodes)
    for records, colour, label, dash in (
        (alone, BLUE, "operator not needed", "-"),
        (assisted, ORANGE, "operator helped", "--"),
    ):
        successes = [record for record in records if record["success"]]
        _rolling_line(cycle, successes, "cycle_time_s", colour, label, linestyle=dash, raw=True)
    if demo_cycle_time_s is not None:
        cycle.axhline(demo_cycle_time_s, color=BLACK, linewidth=1, linestyle=":", label="demonstrations")
    _style(cycle, "Cycle time of successes", "cycle time [s]")
    if evaluation is not None:
        last = max((record["env_step"] for record in metrics), default=0)
        _evaluation_point(success, last, evaluation)
        if evaluation.get("cycle_time_s") is not None:
            cycle.plot(last, evaluation["cycle_time_s"], "D", color=GREEN, markersize=7, label="evaluation")
    cycle.set_ylim(bottom=0)
    for axes in (success, returns, intervention, cycle):
        _legend(axes)
    figure.supxlabel(f"env steps (lines: mean over the last {WINDOW} episodes; dots: episodes)", fontsize=10)
    _save(figure, path)


def _returns_alone(episodes: Sequence[Record], curve: Sequence[Record], title: str, evaluation: Record) -> Figure:
    """Return the picture of a run in an environment in which no episode can succeed."""
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    axes = figure.subplots()
    _rolling_line(axes, episodes, "return", BLUE, "while training", raw=True)
    if curve:
        axes.plot(*_series(curve, "return_mean"), ".-", color=GREEN, linewidth=1.4, label="on held-out resets")
        _newest_line(axes, curve, "return_mean")
    last = max((record["env_step"] for record in (*episodes, *curve)), default=0)
    mean, (low, high) = evaluation["return_mean"], evaluation["return_ci95"]
    label = f"evaluation: {mean:.4g} on {evaluation['episodes']} resets"
    axes.errorbar([last], [mean], yerr=[[mean - low], [high - mean]], fmt="D", color=GREEN, capsize=4, label=label)
    _style(axes, "Return", "sum of rewards")
    _legend(axes)
    axes.set_xlabel(f"env steps (line: mean over the last {WINDOW} episodes; dots: episodes)", fontsize=10)
    return figure


def compare_curves(
    groups: Mapping[str, Sequence[Sequence[Record]]],
    path: Path,
    *,
    title: str = "",
    references: Mapping[str, float] | None = None,
) -> None:
    """Write a PNG that compares settings over several seeds: each seed thin, their mean thick.

    The left panel shows the success on held-out resets without help (the `curve` records), the right one the cycle time
    of the successes. The band is the 95 % bootstrap interval of the mean over seeds; where a seed has no value yet,
    none is drawn. Diamonds are the evaluations of the seeds.

    Args:
        groups: Runs by label; a run is the list of its records.
        path: The PNG.
        title: What is compared.
        references: Success rates by label to draw as level lines, e.g. of behaviour cloning.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    success, cycle = figure.subplots(1, 2)
    for index, (label, runs) in enumerate(groups.items()):
        colour, dash = _CYCLE[index % len(_CYCLE)], _DASHES[index % len(_DASHES)]
        curves = [[record for record in run if record["kind"] == "curve"] for run in runs]
        _group_lines(success, [_series(run, "success_rate") for run in curves], label, colour, dash)
        _group_lines(cycle, [_series(run, "cycle_time_s") for run in curves], label, colour, dash)
        evaluations = [record for run in runs for record in run if record["kind"] == "evaluation"]
        for axes, name in ((success, "success_rate"), (cycle, "cycle_time_s")):
            axes.plot(*_series(evaluations, name), "D", color=colour, markersize=4, alpha=0.7)
    for index, (label, rate) in enumerate((references or {}).items()):
        pattern = ((1, 1), (5, 2), (6, 2, 1, 2), (2, 4))[index % 4]
        success.axhline(rate, color="#666666", linewidth=1.3, linestyle=(0, pattern), label=label)
    _style(success, "Success on held-out resets, without help", "share of episodes", limits=(-0.03, 1.03))
    _style(cycle, "Cycle time of successes without help", "cycle time [s]")
    cycle.set_ylim(bottom=0)
    for axes in (success, cycle):
        axes.set_xlabel("env steps")
    handles, labels = success.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3), frameon=False, fontsize=9)
    _save(figure, path)


def rolling_mean(values: Sequence[float] | np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Return the mean of each value and up to `window` - 1 before it. Shape as `values`."""
    sums = np.concatenate(([0.0], np.cumsum(np.asarray(values, dtype=float))))
    last = np.arange(1, len(sums))
    first = np.maximum(last - window, 0)
    return (sums[last] - sums[first]) / (last - first)


def _newest_line(axes: Axes, curve: Sequence[Record], name: str) -> None:
    """Draw the curve of the newest policy beside that of the deployed mean, where it was evaluated, too."""
    steps, values = _series(curve, f"newest_{name}")
    if len(steps):
        axes.plot(steps, values, ".:", color=PINK, linewidth=1.2, label="the same, newest policy")


def _series(records: Sequence[Record], name: str) -> tuple[np.ndarray, np.ndarray]:
    known = [record for record in records if record.get(name) is not None]
    return np.array([record["env_step"] for record in known]), np.array([record[name] for record in known], dtype=float)


def _rolling_line(
    axes: Axes,
    records: Sequence[Record],
    name: str,
    colour: str,
    label: str,
    *,
    linestyle: str = "-",
    raw: bool = False,
) -> None:
    steps, values = _series(records, name)
    if not values.size:
        return
    if raw:
        axes.plot(steps, values, ".", color=colour, alpha=0.25, markersize=4, markeredgewidth=0)
    axes.plot(steps, rolling_mean(values), linestyle, color=colour, linewidth=1.8, label=label)


def _effort_line(axes: Axes, episodes: Sequence[Record]) -> None:
    """Draw the operator's time so far, demonstrations included, on an axis of its own at the right."""
    priced = [record for record in episodes if record.get("person")]
    if not priced:
        return
    steps = [record["env_step"] for record in priced]
    minutes = [record["person"]["seconds"] / 60.0 for record in priced]
    right = axes.twinx()
    axes.set_zorder(right.get_zorder() + 1)  # its legend lies over this line
    axes.patch.set_visible(False)
    right.plot(steps, minutes, color=BLACK, linewidth=1.4, linestyle=":")
    right.set_ylabel("operator's time so far [min]")
    right.set_ylim(bottom=0)
    right.spines[["top"]].set_visible(False)
    axes.plot([], [], color=BLACK, linewidth=1.4, linestyle=":", label="operator's time (right)")


def _evaluation_point(axes: Axes, step: int, evaluation: Record) -> None:
    rate = evaluation["success_rate"]
    low, high = evaluation.get("success_ci95") or (rate, rate)
    label = f"evaluation: {rate:.0%}" + (f" of {evaluation['episodes']}" if evaluation.get("episodes") else "")
    errors = [[max(rate - low, 0.0)], [max(high - rate, 0.0)]]
    axes.errorbar([step], [rate], yerr=errors, fmt="D", color=GREEN, markersize=7, capsize=4, label=label, zorder=5)


def _group_lines(axes: Axes, runs: Sequence[tuple[np.ndarray, np.ndarray]], label: str, colour: str, dash: str) -> None:
    """Draw the runs of one setting, each given as env steps and values, both of shape (points,)."""
    grid = np.linspace(0, max((steps[-1] for steps, _ in runs if steps.size), default=0), 101)
    curves = []
    for steps, values in runs:
        if values.size:
            axes.plot(steps, values, color=colour, linewidth=0.7, alpha=0.4)
            curves.append(np.interp(grid, steps, values, left=np.nan, right=np.nan))
    if not curves:
        return
    table = np.stack(curves)
    shown = ~np.isnan(table).any(axis=0)
    grid, table = grid[shown], table[:, shown]
    axes.plot(grid, table.mean(axis=0), dash, color=colour, linewidth=2.4, label=f"{label} ({len(curves)} seeds)")
    if len(curves) > 1:
        bands = np.array([bootstrap_interval([column], np.mean, resamples=500) for column in table.T]).reshape(-1, 2)
        axes.fill_between(grid, bands[:, 0], bands[:, 1], color=colour, alpha=0.15, linewidth=0)


def _style(axes: Axes, title: str, unit: str, limits: tuple[float, float] | None = None) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_ylabel(unit)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(left=0)
    if limits:
        axes.set_ylim(*limits)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8.5, framealpha=0.85)


def _save(figure: Figure, path: Path) -> None:
    write_png(figure, path)
