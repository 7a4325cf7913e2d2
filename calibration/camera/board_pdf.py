"""PDF of a calibration board, to scale."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calibration.camera.board import Board
from robot_rl.errors import CalibrationError, UnknownNameError
from robot_rl.system.atomic_file import writing

PAGES = {"a4": (210.0, 297.0), "a3": (297.0, 420.0), "letter": (215.9, 279.4)}
"""Width and height [mm]."""
_UNPRINTED = 5.0
"""Width of the edge of the page that printers leave blank [mm]."""
_FOOT = 14.0
"""Room below the board for the ruler and the text [mm]."""
_MM_PER_INCH = 25.4


def write_board_pdf(board: Board, path: Path, page: str = "a4") -> None:
    """Write a one-page PDF with the board at its true size and a ruler to check the print.

    Raises:
        UnknownNameError: if the page size is not in `PAGES`.
        CalibrationError: if the board does not fit on the page.
        RunDirectoryError: if the file cannot be written.
    """
    if page not in PAGES:
        raise UnknownNameError("page size", page, PAGES)
    need_x, need_y = (1e3 * side + 2 * _UNPRINTED for side in board.extent)
    need_y += _FOOT
    fitting = [size for size in (PAGES[page], PAGES[page][::-1]) if need_x <= size[0] and need_y <= size[1]]
    if not fitting:
        raise CalibrationError(
            f"board {board} needs {need_x:.0f} x {need_y:.0f} mm with its foot line, {page} has "
            f"{PAGES[page][0]:.0f} x {PAGES[page][1]:.0f} mm; take fewer or smaller squares, or a larger page"
        )
    width, height = fitting[0]
    figure = Figure(figsize=(width / _MM_PER_INCH, height / _MM_PER_INCH))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)  # y down, as in the board's frame
    axes.set_axis_off()
    left, top = 0.5 * (width - 1e3 * board.extent[0]), 0.5 * (height - _FOOT - 1e3 * board.extent[1])
    patches = [Rectangle((left + 1e3 * x, top + 1e3 * y), 1e3 * w, 1e3 * h) for x, y, w, h in board.black_rectangles()]
    # An outline of 0.007 mm: viewers show gaps between rectangles that only touch.
    axes.add_collection(PatchCollection(patches, facecolor="black", edgecolor="black", linewidth=0.02))
    ruler = height - _UNPRINTED - 4.0
    axes.plot([10, 110], [ruler, ruler], color="black", linewidth=0.5)
    for x in (10, 110):
        axes.plot([x, x], [ruler - 1.5, ruler + 1.5], color="black", linewidth=0.5)
    text = f"100 mm: measure it. Print at 100 %, not fitted to the page.  --board {board}"
    axes.text(10, ruler - 2.0, text, fontsize=7, family="monospace")
    with writing(path):
        FigureCanvasPdf(figure)
        figure.savefig(path, format="pdf", metadata={"Title": f"robot_rl board {board}", "CreationDate": None})
