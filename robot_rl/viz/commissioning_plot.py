"""The picture of a commissioning: set-points and what the arm made of them, a panel for each trial."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_COLUMNS = 3
_AXES = "xyz"


def commissioning_plot(traces: Mapping[str, Mapping[str, Any]], title: str) -> bytes:
    """Return a PNG with a panel for each trace.

    Args:
        traces: By name, each with `seconds`, `target_m`, `position_m`, `force_n` and `width_m`, as they are stored.
        title: Of the whole.
    """
    rows = -(-max(1, len(traces)) // _COLUMNS)
    figure = Figure(figsize=(12.0, 0.8 + 2.5 * rows), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    panels = list(figure.subplots(rows, _COLUMNS, squeeze=False).flat)
    for panel in panels:
        panel.set_visible(False)
    for panel, (name, trace) in zip(panels, traces.items(), strict=False):
        panel.set_visible(True)
        _draw(panel, name, {key: np.array(values, dtype=float) for key, values in trace.items()})
        panel.set_title(name, fontsize=10)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        panel.legend(fontsize=7, frameon=False)
    for panel in panels[max(0, len(traces) - _COLUMNS) :]:
        panel.set_xlabel("s", fontsize=8)
    file = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(file, format="png", dpi=110)
    return file.getvalue()


def _draw(panel: Any, name: str, trace: Mapping[str, np.ndarray]) -> None:
    seconds = trace["seconds"]
    if name.startswith("gripper"):
        panel.plot(seconds, 1e3 * trace["width_m"], label="width")
        panel.set_ylabel("mm", fontsize=8)
    elif name == "press":
        for number, axis in enumerate(_AXES):
            panel.plot(seconds, trace["force_n"][:, number], label=f"force {axis} (base)")
        panel.set_ylabel("N", fontsize=8)
    else:
        start = trace["position_m"][0]
        moved, target = 1e3 * (trace["position_m"] - start), 1e3 * (trace["target_m"] - start)
        shown = [number for number, axis in enumerate(_AXES) if name[-1] == axis] or [0, 1, 2]
        if name in ("expiry", "stop"):
            shown = [2]
        for number in shown:
            panel.plot(
                seconds,
                target[:, number],
                "--",
                color="0.55",
                linewidth=1.0,
                label="set-point" if number == shown[0] else "_",
            )
            panel.plot(seconds, moved[:, number], color=f"C{number}", label=f"tcp {_AXES[number]}")
        panel.set_ylabel("mm from the start", fontsize=8)
