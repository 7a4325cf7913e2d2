"""Report of a calibration: one HTML file with the verdict, the figures, the rejected data, and pictures.

Every calibration ends with `write_result_and_report`: it always writes the report, and the result only if it is good.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from calibration.result import Calibration, Quality, save_result
from calibration.result.reasons import reasons
from robot_rl.system.atomic_file import write_result
from robot_rl.viz.learning_curve import BLUE, GREEN

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.verdict { padding: .7rem 1rem; border-left: .4rem solid }
.good { border-color: #009E73; background: #eef8f4 } .bad { border-color: #D55E00; background: #fdf1ea }
table { border-collapse: collapse } td, th { padding: .15rem 1.2rem .15rem 0; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } img { max-width: 100%; margin: .5rem 0 }
"""


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """Content of a report.

    Attributes:
        title: Name of what was calibrated.
        quality: Verdict, figures and rejected data.
        tables: Rows of cells by heading; the first row has the names of the columns.
        figures: Pictures by heading.
    """

    title: str
    quality: Quality
    tables: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the HTML file, pictures included.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        kind = "good" if self.quality.good else "bad"
        parts = [f"<h1>{_text(self.title)}</h1>", f'<p class="verdict {kind}">{_text(self.quality.verdict)}</p>']
        figures = [("figure", "value"), *((name, f"{value:.5g}") for name, value in self.quality.figures.items())]
        parts += [_table("Figures", figures)]
        parts += [_table(heading, rows) for heading, rows in self.tables.items()]
        if self.quality.rejected:
            parts.append(_table("Left out", [("view", "reason"), *self.quality.rejected.items()]))
        for heading, figure in self.figures.items():
            data = base64.b64encode(_png(figure)).decode()
            parts.append(f'<h2>{_text(heading)}</h2><img alt="{_text(heading)}" src="data:image/png;base64,{data}">')
        write_result(
            path,
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(self.title)}</title>'
            f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n",
        )


def new_figure(width: float = 10.0, height: float = 4.0) -> Figure:
    """Make an empty figure of this width and height [inches] that needs no screen."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def bars(
    axes: Axes,
    names: tuple[str, ...] | list[str],
    values: np.ndarray | list[float],
    label: str,
    line: float | None = None,
    *,
    of: str = "picture",
) -> None:
    """Draw bars with as many names below as there is room for, and a dashed line at `line` if that is given.

    Args:
        axes: Where.
        names: Of the bars.
        values: Their heights.
        label: What the heights are, with the unit.
        line: The value of all together.
        of: What each bar is of.
    """
    axes.bar(range(len(names)), values, color=BLUE)
    axes.set_ylabel(label)
    if line is not None:
        axes.axhline(line, color=GREEN, linestyle="--", label=f"all together: {line:.3g}")
        axes.legend()
    axes.set_xlabel(of)
    name_ticks(axes, names)


def name_ticks(axes: Axes, names: Sequence[str]) -> None:
    """Write as many names below the places 0, 1, ... as there is room for."""
    every = max(1, len(names) // 25)
    axes.set_xticks(
        range(0, len(names), every),
        [n if len(n) <= 14 else f"...{n[-11:]}" for n in names[::every]],
        rotation=60,
        ha="right",
        fontsize=7,
    )


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _table(heading: str, rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in rows[0])
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{"number" if _is_number(cell) else ""}">{_text(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows[1:]
    )
    return f"<h2>{_text(heading)}</h2><table><tr>{head}</tr>{body}</table>"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text(text: str) -> str:
    return html.escape(str(text))


def write_result_and_report(
    result: Calibration, quality: Quality, report: CalibrationReport, out: Path, page: Path
) -> list[str]:
    """Write the report and, if it is good, the result.

    Args:
        result: Result of the calibration.
        quality: Its quality.
        report: Its report.
        out: File of the result.
        page: File of the report.

    Returns:
        Lines of text for the operator.
    """
    report.write(page)
    lines = [
        quality.verdict,
        *(f"left out: {line}" for line in reasons(quality.rejected)),
        f"report: {page}",
    ]
    if quality.good:
        save_result(result, quality, out)
        return [*lines, f"result: {out}"]
    return [*lines, f"no result was written to {out}, because it is not good enough"]
