"""The report of a commissioning, kept beside the robot's file, and named by the runs that follow."""

from __future__ import annotations

import datetime
from pathlib import Path

from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.doctor.report import html_page, summary
from robot_rl.run.directory.commissioning import FOLDER, FORMAT, REPORT, file_digest
from robot_rl.system.atomic_file import to_json, write_atomically, writing

PAGE = "report.html"


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
        "robot_sha256": file_digest(robot),
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
