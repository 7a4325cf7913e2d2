"""The picture of policies in other worlds: success over the strength of each axis, with interval bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from robot_rl.viz.png import write_png

_COLUMNS = 3


def perturbed_plot(
    axes: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]], titles: Mapping[str, str], path: Path, *, title: str
) -> None:
    """Write a PNG with a panel for each axis and a line for each run.

    Args:
        axes: By axis and run, the points: `strength`, `success_rate`, `success_ci95`, and whether it is `nominal`.
        titles: Of the axes, with their units.
        path: The PNG.
        title: Which task it is.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    columns, rows = min(_COLUMNS, len(axes)), -(-len(axes) // _COLUMNS)
    figure = Figure(figsize=(1.2 + 3.4 * columns, 0.8 + 2.6 * rows), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in panels:
        panel.set_visible(False)
    for panel, (name, runs) in zip(panels, axes.items(), strict=False):
        panel.set_visible(True)
        for number, (label, points) in enumerate(runs.items()):
            at, colour = [point["strength"] for point in points], f"C{number}"
            low, high = zip(*(point["success_ci95"] for point in points), strict=True)
            rates = [point["success_rate"] for point in points]
            panel.plot(at, rates, color=colour, marker="o", markersize=3.5, linewidth=1.6, label=label)
            panel.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
            for point in points:
                if point["nominal"]:
                    panel.axvline(point["strength"], color="0.6", linestyle=":", linewidth=1.0, zorder=0)
        panel.set(xlabel=titles[name], ylim=(-0.03, 1.03))
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    first = figure.axes[0]
    first.set_ylabel("success, 95 % interval")
    if any(axes.values()):
        first.legend(loc="lower left", fontsize=8, framealpha=0.85)
    write_png(figure, path)
