"""Figure of a test for a change: the errors of the poses in order of time, without the change and with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from calibration.constancy.change_test import Change
from calibration.constancy.linear_model import STEP, STRETCH
from calibration.report.report import name_ticks, new_figure
from robot_rl.viz.learning_curve import BLUE, GREEN, ORANGE


def change_heading(change: Change) -> str:
    """Return the heading of the figure, with the p-value."""
    return f"Errors over time; a change is as likely by chance as p = {change.p:.4f}"


def change_figure(names: Sequence[str], change: Change) -> Figure:
    """Draw the errors of the poses in order of time; outliers are open circles, the moment of a step is a band."""
    figure = new_figure(11, 3.4)
    axes, places = figure.subplots(), np.arange(len(names))
    labels = ("if nothing changes", f"with the best {change.course.kind} of the {change.course.cause}")
    for sizes, colour, label in zip(change.sizes.T, (ORANGE, BLUE), labels, strict=True):
        axes.plot(places[change.keep], sizes[change.keep], ".-", color=colour, label=label, linewidth=0.8)
        axes.plot(places[~change.keep], sizes[~change.keep], "o", color=colour, fillstyle="none")
    if change.course.kind == STEP:
        axes.axvspan(*change.between, color=GREEN, alpha=0.2, linewidth=0)
    elif change.course.kind == STRETCH:
        axes.axvspan(change.course.first - 0.5, change.course.back - 0.5, color=GREEN, alpha=0.2, linewidth=0)
    axes.set(ylabel="error [standard deviations]", ylim=(0, None))
    name_ticks(axes, names)
    axes.legend()
    return figure
