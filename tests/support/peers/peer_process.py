"""A peer in a process of its own, told by lines on its standard input what happens to it."""

import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).parent


class PeerProcess:
    def __init__(self, program, *arguments):
        path = os.pathsep.join((str(SUPPORT), str(SUPPORT.parents[2])))
        self._process = subprocess.Popen(
            [sys.executable, str(SUPPORT / program), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        assert self._process.stdout.readline().strip() == "ready"

    def tell(self, line):
        """Send a line, and return the answer."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self):
        self._process.stdin.close()
        self._process.wait(10)
