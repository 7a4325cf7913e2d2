"""Jobs of a benchmark: processes of `robot-rl` that each leave a result on disk, several at a time.

A finished job stays, a stopped or killed one goes on or begins again, and one that failed is started again by the next
call.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from robot_rl.errors import InterruptedRunError
from robot_rl.system.child_process import ChildProcess
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Progress

_POLL = 0.2
"""Time between two looks at the processes [s]."""
_STOP_LIMIT = 120.0
"""Time for a job to end its episode and to save [s]."""


class Job(Protocol):
    """One process and its result."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def finished(self) -> bool:
        """Whether it has a result."""
        ...

    def check(self) -> None:
        """Refuse a result, or the beginning of one, that is of another job.

        Raises:
            ConfigError: naming it.
        """
        ...

    def command(self) -> list[str]:
        """Return the command that starts or resumes it."""
        ...


_J = TypeVar("_J", bound=Job)


@dataclass(frozen=True)
class FailedJob(Generic[_J]):
    """A job that ended without a result.

    Attributes:
        job: The job.
        reason: Its last line.
    """

    job: _J
    reason: str

    def __str__(self) -> str:
        """Return name and reason."""
        return f"{self.job.name}: {self.reason}"


def play(
    jobs: Sequence[_J],
    at_a_time: int,
    *,
    on_change: Callable[[int, int], object] = lambda finished, running: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[FailedJob[_J]]:
    """Play all jobs that have no result yet; return those that failed.

    Args:
        jobs: All jobs of the benchmark.
        at_a_time: Processes at a time.
        on_change: Called with the number of jobs with a result, and of running ones, whenever one of them changes.
        stop: Called often; once it returns True the running ones are stopped, which save, and no other is started.

    Raises:
        ConfigError: before anything starts, if there are results of other jobs.
    """
    _check(jobs)
    waiting = [job for job in jobs if not job.finished]
    running: list[tuple[_J, ChildProcess]] = []
    failures: list[FailedJob[_J]] = []
    stopping = False
    try:
        while (waiting and not stopping) or running:
            while waiting and len(running) < at_a_time and not stopping:
                job = waiting.pop(0)
                child = ChildProcess(job.command(), on_line=lambda line: None, death_signal=signal.SIGTERM)
                running.append((job, child))
                on_change(sum(one.finished for one in jobs), len(running))
            time.sleep(_POLL)
            for job, process in list(running):
                if process.poll() is None:
                    continue
                process.wait()
                running.remove((job, process))
                if not job.finished and not stopping:
                    failures.append(FailedJob(job, process.describe_end()))
                on_change(sum(one.finished for one in jobs), len(running))
            if not stopping and stop():
                stopping = True
                for _, process in running:
                    process.send_signal(signal.SIGTERM)
    finally:
        for _, process in running:
            process.end(_STOP_LIMIT, signal.SIGTERM)
    return failures


def _check(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.check()


def play_shown(jobs: Sequence[_J], at_a_time: int, name: str, unit: str) -> list[FailedJob[_J]]:
    """Play all jobs with a progress display; see `play`.

    Args:
        jobs: All jobs.
        at_a_time: Processes at a time; with 0 nothing is played, only checked that what there is belongs to these jobs.
        name: Of the benchmark, for people.
        unit: What the jobs are called, for people.

    Raises:
        ConfigError: as `play`.
        InterruptedRunError: after Ctrl-C; the same command goes on.
    """
    if at_a_time == 0:
        _check(jobs)
        return []
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        progress.log(f"stopping: the running {unit} end their episode and save")

    start = sum(job.finished for job in jobs)
    with Progress(len(jobs), name, unit=unit, start=start) as progress, stop_on_signal(stop):
        failures = play(
            jobs,
            at_a_time,
            on_change=lambda finished, running: progress.update(finished, running=float(running)),
            stop=lambda: stopped,
        )
    if stopped:
        raise InterruptedRunError("stopped and saved; the same command goes on")
    return failures
