"""The picture of a suite of runs: score over env steps, and performance profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from robot_rl.viz.learning_curve import BLUE
from robot_rl.viz.png import write_png


def suite_plot(
    over_steps: tuple[np.ndarray, np.ndarray, np.ndarray],
    profile: tuple[np.ndarray, np.ndarray],
    path: Path,
    *,
    title: str,
) -> None:
    """Write a PNG of two panels.

    Args:
        over_steps: Env steps, shape (G,); interquartile mean of the scores, (G,); its interval, (G, 2).
        profile: Thresholds and shares of runs above them, both of shape (G,).
        path: The PNG.
        title: Which suite it is.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    left, right = figure.subplots(1, 2)
    steps, middle, band = over_steps
    left.plot(steps, middle, color=BLUE, linewidth=1.8, label="interquartile mean")
    left.fill_between(steps, band[:, 0], band[:, 1], color=BLUE, alpha=0.2, linewidth=0, label="95 % interval")
    left.set(title="Learning, on held-out resets", xlabel="env steps", ylabel="score, interquartile mean over all runs")
    left.legend(loc="lower right", fontsize=8.5, framealpha=0.85)
    right.step(*profile, where="post", color=BLUE, linewidth=1.8)
    right.set(title="Performance profile", xlabel="score", ylabel="share of runs above this score")
    right.set_xlim(profile[0][0], profile[0][-1])
    lowest, highest = min(0.0, *band[:, 0], *middle), max(1.0, *band[:, 1], *middle)  # a return may be any
    for axes, low, high in ((left, lowest, highest), (right, 0.0, 1.0)):
        margin = 0.03 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    write_png(figure, path)
