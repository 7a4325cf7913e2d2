"""The picture of a sweep: scores of the trials, importance of the settings, and the trials as parallel coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from robot_rl.viz.learning_curve import BLUE
from robot_rl.viz.png import write_png


def sweep_plot(
    scores: Sequence[Sequence[tuple[int, float]]],
    importance: Mapping[str, float],
    coordinates: np.ndarray,
    ticks: Sequence[tuple[str, str, str]],
    path: Path,
    *,
    title: str,
) -> None:
    """Write a PNG of three panels.

    Args:
        scores: For each trial, env steps and score at each rung that it reached.
        importance: Share of each setting, by key.
        coordinates: Settings of each trial, each axis scaled to [0, 1], shape (trials, axes).
        ticks: For each axis its name, and the texts of its lower and upper end.
        path: The PNG.
        title: Which sweep it is.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    figure = Figure(figsize=(14, 4.2), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 0.8, 1.6))
    final = np.array([points[-1][1] if points else np.nan for points in scores])
    low, high = (np.nanmin(final), np.nanmax(final)) if np.isfinite(final).any() else (0.0, 1.0)
    span = max(high - low, 1e-9)
    colours = colormaps["viridis"]((np.nan_to_num(final, nan=low) - low) / span)
    for points, colour in zip(scores, colours, strict=True):
        left.plot(*zip(*points, strict=True), "o-", color=colour, markersize=4, linewidth=1.0) if points else None
    left.set(title="Trials, rung by rung", xlabel="env steps", ylabel="score, mean over tuning seeds")
    names = sorted(importance, key=lambda name: importance[name])
    middle.barh(names, [importance[name] for name in names], color=BLUE)
    middle.set(title="Importance (PED-ANOVA)", xlim=(0, 1))
    if not names:
        middle.set_yticks([])
        middle.text(0.5, 0.5, "too few trials", ha="center", va="center", transform=middle.transAxes)
    for row, colour in sorted(zip(coordinates, colours, strict=True), key=lambda pair: pair[0].tolist()):
        right.plot(range(len(row)), row, color=colour, linewidth=1.0, alpha=0.8)
    right.set(title="Settings, coloured by score", xticks=range(len(ticks)), yticks=[], xlim=(-0.3, len(ticks) - 0.7))
    right.set_xticklabels([f"{name}\n{lower} to {upper}" for name, lower, upper in ticks], fontsize=7.5)
    for axes in (left, middle, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    write_png(figure, path)
