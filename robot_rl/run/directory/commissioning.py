"""The newest commissioning of a robot, which `robot-rl commission` keeps beside its file, as a run records it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from robot_rl.errors import DataError
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

FOLDER = "commissioning"
"""Beside the robot's file; each commissioning has a folder in it."""
REPORT = "report.json"
FORMAT = "robot_rl.commissioning/1"


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
        "same_robot_file": report.get("robot_sha256") == file_digest(robot),
    }


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
