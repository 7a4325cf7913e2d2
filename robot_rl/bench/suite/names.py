"""The names of our suites and the seeds for tuning: apart from the rest, so that `--help` waits for nothing."""

from __future__ import annotations

from pathlib import Path

SUITES = Path(__file__).parent / "suites"
TUNING_SEEDS_FROM = 100
"""Seeds from here on are for choosing settings; those below are for results."""


def suite_names() -> list[str]:
    """Return the names of the suites that come with us."""
    return sorted(path.stem for path in SUITES.glob("*.yaml"))
