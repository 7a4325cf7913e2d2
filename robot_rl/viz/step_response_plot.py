"""The picture of step responses: a panel for each axis, all steps over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from robot_rl.viz.png import write_png


def step_response_plot(
    steps: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]], path: Path, title: str
) -> None:
    """Write a PNG.

    Args:
        steps: By axis, for each step: time from the step on [s], and position and set-point from its begin on, in the
            direction of the step [mm].
        path: The PNG.
        title: Which arm it is.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    figure = Figure(figsize=(4.0 * len(steps), 3.4), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    for panel, (axis, rows) in zip(figure.subplots(1, len(steps), squeeze=False).flat, steps.items(), strict=True):
        for number, (seconds, position, target) in enumerate(rows):
            if number == 0:
                panel.plot(seconds, target, "--", color="0.4", linewidth=1.0, label="set-point")
            label = {0: "there", 1: "back"}.get(number, "_")
            panel.plot(seconds, position, color=f"C{number % 2}", alpha=0.7, linewidth=1.0, label=label)
        panel.set_title(f"along {axis}", fontsize=10)
        panel.set_xlabel("s from the step on")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False)
    figure.axes[0].set_ylabel("mm in the direction of the step")
    write_png(figure, path)
