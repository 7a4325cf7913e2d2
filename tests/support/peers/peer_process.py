"""A peer in a process of its own, told by lines on its standard input what happens to it."""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SUPPORT = Path(__file__).parent
LAST_WORDS = 4000
"""How much of its standard error is quoted [characters]."""


ARM_PRIORITY = 60
"""Of a simulated arm: above that of control (40), below that of the kernel's own threads."""


def real_time(process):
    """Give a peer real-time priority where that is allowed, since a real arm does not wait for this machine."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(ARM_PRIORITY))


class PeerProcess:
    """The process; one that dies is an AssertionError with its exit code and the end of its standard error."""

    def __init__(self, program, *arguments):
        path = os.pathsep.join((str(SUPPORT), str(SUPPORT.parents[2])))
        self._program, self._errors = program, tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", str(SUPPORT / program), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        assert self._answer() == "ready"

    def tell(self, line):
        """Send a line, and return the answer."""
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        return self._answer()

    def end(self):
        """End it; what it said is an error only if it did not end by itself and well."""
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            raise self._died() from None
        if self._process.wait(10):
            raise self._died()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise self._died()
        return line.strip()

    def _died(self):
        code = self._process.wait(10)
        self._errors.seek(0)
        return AssertionError(f"{self._program} has ended with {code}: {self._errors.read()[-LAST_WORDS:].strip()}")
