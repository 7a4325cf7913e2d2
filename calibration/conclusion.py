"""How every calibration ends: its report is written in any case, its result only if it can be trusted."""

from __future__ import annotations

from pathlib import Path

from calibration.report import Report
from calibration.result import Calibration, Quality, save_result


def conclude(result: Calibration, quality: Quality, report: Report, out: Path, page: Path) -> list[str]:
    """Writes report and, if it is good, result; says what was done.

    Args:
        result: What was found.
        quality: How good it is.
        report: What to show of it.
        out: File of the result.
        page: File of the report.
    """
    report.write(page)
    lines = [
        quality.verdict,
        *(f"left out: {name}: {why}" for name, why in quality.rejected.items()),
        f"report: {page}",
    ]
    if quality.good:
        save_result(result, quality, out)
        return [*lines, f"result: {out}"]
    return [*lines, f"no result was written to {out}, as it could not be trusted"]
