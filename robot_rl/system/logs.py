"""Log messages on the command line: one plain line each on standard error, `warning: ...` or `note: ...`."""

from __future__ import annotations

import logging
import sys

from robot_rl.system.printable import printable

PACKAGES = ("robot_rl", "sim", "calibration", "ros_nodes")
_LABELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "note"))


class PlainHandler(logging.Handler):
    """Writes the message after its level, for people."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record to the standard error of the moment."""
        label = next((label for level, label in _LABELS if record.levelno >= level), "debug")
        print(f"{label}: {printable(record.getMessage())}", file=sys.stderr, flush=True)


def show_logs() -> None:
    """Show the messages of our packages from level INFO on; it may be called again."""
    for package in PACKAGES:
        logger = logging.getLogger(package)
        logger.setLevel(logging.INFO)
        if not any(isinstance(handler, PlainHandler) for handler in logger.handlers):
            logger.addHandler(PlainHandler())
