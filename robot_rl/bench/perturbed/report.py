"""What the grid shows: success over the strength of each axis, with 95 % Wilson intervals; a table, a page, a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot_rl.bench.jobs import FailedJob
from robot_rl.bench.perturbed.axes import Axis
from robot_rl.bench.perturbed.grid import Grid, WorldEvaluation
from robot_rl.system.atomic_file import write_atomically


def curves(grid: Grid) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the points of what is finished: by axis and run, in the order of the strength.

    A point has `strength`, `success_rate`, `success_ci95`, `cycle_time_s`, and whether it is the `nominal` one.
    """
    found: dict[str, dict[str, list[dict[str, Any]]]] = {axis.name: {} for axis in grid.axes}
    for one in grid.evaluations:
        if one.finished:
            result = one.result()
            measured = {key: result[key] for key in ("success_rate", "success_ci95", "cycle_time_s")}
            for axis in grid.axes if one.axis is None else (one.axis,):
                strength = axis.nominal if one.axis is None else one.strength
                point = {"strength": strength, "nominal": one.axis is None, **measured}
                found[axis.name].setdefault(one.label, []).append(point)
    for runs in found.values():
        for points in runs.values():
            points.sort(key=lambda point: point["strength"])
    return found


def summary(grid: Grid, failures: Sequence[FailedJob[WorldEvaluation]]) -> dict[str, Any]:
    """Return all results, for a program."""
    done = sum(one.finished for one in grid.evaluations)
    return {
        "task": grid.task,
        "runs": {one.label: str(one.run) for one in grid.evaluations},
        "episodes": grid.evaluations[0].episodes,
        "evaluation_seed": grid.evaluations[0].seed,
        "evaluations": done,
        "wanted": len(grid.evaluations),
        "axes": curves(grid),
        "missing": grid.missing,
        "failed": [str(failure) for failure in failures],
    }


def page(grid: Grid, answer: dict[str, Any], command: str) -> str:
    """Return the report as Markdown."""
    lines = [
        f"# {grid.task} in other worlds",
        "",
        f"Command: `{command}`",
        "",
        f"Success in {answer['episodes']} episodes of seed {answer['evaluation_seed']}, the same resets in all worlds, "
        "with its 95 % Wilson interval. Each axis alone.",
        "",
        "![Success over the strength of each axis](perturbed.png)",
        "",
    ]
    for axis in grid.axes:
        lines += [*_table(axis, answer["axes"][axis.name], list(answer["runs"])), ""]
    if grid.missing:
        lines += ["Left out:", "", *(f"- {name}: {reason}" for name, reason in grid.missing.items()), ""]
    if answer["failed"]:
        lines += ["Without a result:", "", *(f"- {text}" for text in answer["failed"]), ""]
    return "\n".join(lines)


def write_page(grid: Grid, answer: dict[str, Any], command: str, out: Path) -> Path:
    """Write the report `report.md` and its picture; return the path of the page.

    Raises:
        RunDirectoryError: if they cannot be written.
    """
    if answer["evaluations"]:
        from robot_rl.viz.perturbed_plot import perturbed_plot  # here, as matplotlib takes half a second to import

        titles = {axis.name: axis.title for axis in grid.axes}
        perturbed_plot(answer["axes"], titles, out / "perturbed.png", title=f"{grid.task} in other worlds")
    path = out / "report.md"
    write_atomically(path, page(grid, answer, command))
    return path


def _table(axis: Axis, runs: dict[str, list[dict[str, Any]]], labels: list[str]) -> list[str]:
    lines = [f"| {axis.title} | {' | '.join(labels)} |", "|---" * (1 + len(labels)) + "|"]
    for strength in sorted({axis.nominal, *axis.strengths}):
        cells = []
        for label in labels:
            point = next((one for one in runs.get(label, ()) if one["strength"] == strength), None)
            cells.append("" if point is None else success_text(point))
        name = f"{strength:g}, its own" if strength == axis.nominal else f"{strength:g}"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def success_text(point: dict[str, Any]) -> str:
    """Return the success of a point with its interval."""
    low, high = point["success_ci95"]
    return f"{point['success_rate']:.2f} ({low:.2f} to {high:.2f})"
