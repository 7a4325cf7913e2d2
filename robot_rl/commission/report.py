"""The report of a commissioning, kept beside the robot's file, and named by the runs that follow."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path
from typing import Any

from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.report import html_page, summary
from robot_rl.errors import DataError
from robot_rl.system.atomic_file import to_json, write_atomically, writing
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

FOLDER = "commissioning"
"""Beside the robot's file; each commissioning has a folder in it."""
REPORT, PAGE = "report.json", "report.html"
FORMAT = "robot_rl.commissioning/1"


def write_report(outcome: TrialOutcome, robot: Path) -> Path:
    """Write the report and its page, and return their folder.

    Args:
        outcome: What was found and measured.
        robot: The robot's file.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    from robot_rl.viz.commissioning_plot import commissioning_plot  # matplotlib takes half a second to import

    traces = {name: trace.row() for name, trace in outcome.traces.items()}
    report = summary(outcome.results, robot.name) | {
        "format": FORMAT,
        "robot_file": str(robot.resolve()),
        "robot_sha256": _sha256(robot),
        "traces": traces,
    }
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = robot.parent / FOLDER / f"{robot.stem}-{stamp}"
    with writing(folder):
        folder.mkdir(parents=True)
    picture = commissioning_plot(traces, f"Commissioning of {robot.name}") if traces else None
    page = html_page(outcome.results, robot.name, title="Commissioning", picture=picture)
    write_atomically(folder / PAGE, page)
    write_atomically(folder / REPORT, to_json(report, indent=1) + "\n")
    return folder


def newest_report(robot: Path) -> dict[str, Any] | None:
    """Return the facts of the newest commissioning of a robot's file, for the provenance of a run; None without one.

    Returns:
        `path`, `sha256`, `time`, `verdict`, and `same_robot_file`: whether the file is as it was then.

    Raises:
        DataError: if a report is damaged.
    """
    paths = sorted(robot.parent.glob(f"{FOLDER}/{robot.stem}-[0-9]*-[0-9]*/{REPORT}"))
    if not paths:
        return None
    path = paths[-1]
    try:
        data = read_regular(path)
        report = parse_json(data)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}; commission again") from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise DataError(f"{path}: is no report of a commissioning that this program reads; move its folder away")
    return {
        "path": str(path.resolve()),
        "sha256": hashlib.sha256(data).hexdigest(),
        "time": report.get("time"),
        "verdict": report.get("verdict"),
        "same_robot_file": report.get("robot_sha256") == _sha256(robot),
    }


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
