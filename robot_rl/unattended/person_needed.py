"""When a job that goes on by itself needs a person, and how they are called where it ends."""

from __future__ import annotations

import logging
from types import TracebackType

from robot_rl.calling.caller import Caller

logger = logging.getLogger(__name__)


def fruitless(seconds: float, patience: float) -> str | None:
    """Return that there was no success for so long [s], if that is as long as the patience [s]; else None."""
    return f"no success in {seconds / 60:.1f} minutes of robot time" if seconds >= patience else None


def call_for_help(
    caller: Caller,
    job: str,
    how: str,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Call the person when an error ends a job, whatever it is, as nobody may be there; log how to go on.

    Args:
        caller: Calls the person.
        job: What has ended, e.g. `practice`.
        how: How to go on.
        kind: Of the error, as for `ExitStack.push`.
        error: The error; None if there is none.
        trace: Of the error.
    """
    del kind, trace
    if isinstance(error, Exception):  # no Ctrl-C
        caller.call(f"the {job} has ended, and needs a person: {error}")
        if how not in str(error):
            logger.warning("what was recorded is kept; %s", how)
