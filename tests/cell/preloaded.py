"""`robot-rl` commands as processes of their own that have everything imported: importing takes most of a short one.

A process that has imported what commands import is forked for each. What a command starts, such as a learner, is a
program of its own as ever. `python preloaded.py` is that process: a line of JSON in for each command, its exit code
out.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import robot_rl.cli.main

MODULES = (
    *("robot_rl.cell.robot_place", "robot_rl.run.train", "robot_rl.run.evaluate_run", "robot_rl.doctor.command"),
    *("robot_rl.commission.session", "robot_rl.viz.learning_curve", "torch.utils.tensorboard"),
)
"""What is imported, beside the command line."""


class Preloaded:
    """The process; as a context, until its end."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(10)

    def robot_rl(self, *arguments, cwd, input=""):
        """As `running.robot_rl`."""
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / name) for name in ("in", "out", "err")]
            Path(files[0]).write_text(input)
            self._process.stdin.write(json.dumps([list(map(str, arguments)), str(cwd), files]) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            out, err = (Path(file).read_text() for file in files[1:])
        return subprocess.CompletedProcess(list(arguments), code, out, err)


def _command(arguments, cwd, files):
    """In the forked process: do it, and end."""
    os.chdir(cwd)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.argv = ["robot-rl", *arguments]
    sys.exit(robot_rl.cli.main.main())


def main():
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection that looks at all of it would hold up the threads of a command that control an arm
    for line in sys.stdin:
        arguments, cwd, files = json.loads(line)
        if (child := os.fork()) == 0:
            _command(arguments, cwd, files)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
