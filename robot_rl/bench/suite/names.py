"""The names of our suites and the seeds for tuning: apart from the rest, so that `--help` waits for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robot_rl.errors import ConfigError

SUITES = Path(__file__).parent / "suites"
TUNING_SEEDS_FROM = 100
"""Seeds from here on are for choosing settings; those below are for results."""


def suite_names() -> list[str]:
    """Return the names of the suites that come with us."""
    return sorted(path.stem for path in SUITES.glob("*.yaml"))


def check_once(where: str, values: Sequence[object]) -> None:
    """Check that nothing is given twice: the same run would count as several ones.

    Args:
        where: What they are, for the message.
        values: Seeds, or names of tasks.

    Raises:
        ConfigError: naming what is.
    """
    if twice := list(dict.fromkeys(str(value) for value in values if values.count(value) > 1)):
        raise ConfigError(f"{where}: {', '.join(twice)} is given twice; give each once")
