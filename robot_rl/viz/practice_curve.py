"""Picture of a practice: success of each task over the robot's minutes and over those of the person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

ROLLING = 20
"""Episodes of a task of which the success is the mean."""


def practice_curve(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the picture.

    Args:
        rows: The episodes, with `task`, `success`, `assisted`, `robot_s` and `person_s`. An episode in which the
            operator helped counts as no success.
        path: PNG file.
    """
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, key, label in zip(axes, ("robot_s", "person_s"), ("robot time [min]", "human action [min]"), strict=True):
        for task in dict.fromkeys(row["task"] for row in rows):
            own = [row for row in rows if row["task"] == task]
            alone = np.array([row["success"] and not row["assisted"] for row in own], float)
            sums = np.concatenate(([0.0], np.cumsum(alone)))
            ends = np.arange(1, len(own) + 1)
            starts = np.maximum(ends - ROLLING, 0)
            axis.plot([row[key] / 60.0 for row in own], (sums[ends] - sums[starts]) / (ends - starts), label=task)
        axis.set_xlabel(label)
        axis.set_ylim(-0.02, 1.02)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(f"success without help, last {ROLLING}")
    axes[0].legend(loc="upper left", fontsize="small")
    figure.savefig(path, dpi=120)
