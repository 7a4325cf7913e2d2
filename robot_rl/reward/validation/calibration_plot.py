"""A calibration as a picture: where the known episodes lie, and what each threshold gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from robot_rl.reward.validation.probability_calibration import Calibration
from robot_rl.reward.validation.threshold import threshold_curve
from robot_rl.statistics import wilson_interval
from robot_rl.system.atomic_file import writing
from robot_rl.viz.learning_curve import BLACK, BLUE, ORANGE


def draw_calibration(calibration: Calibration, truth: np.ndarray, probability: np.ndarray, path: Path) -> None:
    """Write the picture as PNG.

    Args:
        calibration: The calibration.
        truth: Whether each episode that it was fitted to succeeded, shape (n,), bool.
        probability: Of the model, shape (n,).
        path: Of the new file.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    page = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = page.subplots(1, 2)
    _episodes(left, calibration, truth, probability)
    _thresholds(right, calibration, truth, probability)
    FigureCanvasAgg(page)
    with writing(path):
        page.savefig(path, dpi=100, format="png")


def _episodes(axes: Axes, calibration: Calibration, truth: np.ndarray, probability: np.ndarray) -> None:
    bins = np.linspace(0, 1, 41).tolist()
    for happened, name, colour in ((False, "failures", ORANGE), (True, "successes", BLUE)):
        axes.hist(probability[truth == happened], bins, label=name, color=colour, alpha=0.6)
    grid = np.linspace(0, 1, 401)
    twin = axes.twinx()
    twin.plot(grid, calibration(grid), color=BLACK, label="calibrated probability")
    twin.axhline(calibration.threshold, color=BLACK, linestyle=":", label="threshold")
    twin.set_ylim(0, 1.02)
    axes.set_xlabel("probability of the model")
    axes.set_ylabel("episodes")
    handles = [*axes.get_legend_handles_labels()[0], *twin.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper center", frameon=False, fontsize=8)
    axes.set_title("Episodes that it was fitted to", fontsize=11, loc="left", fontweight="bold")


def _thresholds(axes: Axes, calibration: Calibration, truth: np.ndarray, probability: np.ndarray) -> None:
    grid = np.linspace(0, 1, 201)
    curve = threshold_curve(calibration(probability), truth, grid.tolist())
    wrong = np.array([point.false_positives / point.failures for point in curve])
    ends = np.array([wilson_interval(point.false_positives, point.failures) for point in curve])
    axes.plot(grid, [point.found / point.successes for point in curve], color=BLUE, label="successes found")
    axes.plot(grid, wrong, color=ORANGE, label="failures called a success")
    axes.fill_between(grid, ends[:, 0], ends[:, 1], color=ORANGE, alpha=0.2, label="95 % interval (Wilson)")
    axes.axvline(calibration.threshold, color=BLACK, linestyle=":", label=f"threshold {calibration.threshold:.3f}")
    axes.set_xlabel("threshold of the calibrated probability")
    axes.set_ylabel("share")
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("What each threshold gives", fontsize=11, loc="left", fontweight="bold")
