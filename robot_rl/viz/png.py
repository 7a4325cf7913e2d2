"""A figure as a file."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from robot_rl.system.atomic_file import writing


def write_png(figure: Figure, path: Path, *, dpi: int = 130) -> None:
    """Draw a figure and write it as a PNG.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    with writing(path):
        # `print_figure` and `savefig` would draw everything twice.
        canvas.print_png(str(path))  # type: ignore[no-untyped-call]
