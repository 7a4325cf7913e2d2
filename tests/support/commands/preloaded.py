"""`robot-rl` commands as processes of their own that have everything imported: importing takes most of a short one.

A process that has imported what commands import is forked for each. What a command starts, such as a learner, is a
program of its own as ever. `python preloaded.py` is that process: a line of JSON in for each command, the number of its
process and then its exit code out.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import robot_rl.cli.main

MODULES = (
    *("robot_rl.cell.robot_place", "robot_rl.run.train", "robot_rl.run.conclude", "robot_rl.run.evaluate_run"),
    *("robot_rl.doctor.command", "robot_rl.commission.session", "robot_rl.viz.learning_curve", "robot_rl.viz.film"),
    *("torch.utils.tensorboard", "scipy.linalg", "scipy.spatial.transform"),
)
"""What is imported, beside the command line. Not MuJoCo, which opens the graphics card where it is imported."""

AT_IMPORT = ("PYTHON", "OMP_", "MUJOCO_", "PYOPENGL_", "LD_", "MPL", "TORCH")
"""Variables of the environment, by their beginnings, that count while Python starts or imports."""


class Preloaded:
    """The process; it ends with this one."""

    def __init__(self, environment):
        self._fixed = _at_import(environment)
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def serves(self, environment):
        """Whether a program started in this environment would have imported the same."""
        return self._process.poll() is None and _at_import(environment) == self._fixed

    def robot_rl(self, arguments, environment, cwd, said, patience):
        """As `subprocess.run` of a command, told `said`; one that takes longer than `patience` [s] is killed."""
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / name) for name in ("in", "out", "err")]
            Path(files[0]).write_text(said)
            self._process.stdin.write(json.dumps([arguments, environment, str(cwd), files]).encode() + b"\n")
            self._process.stdin.flush()
            child = int(self._process.stdout.readline())
            try:
                if not select.select([self._process.stdout], [], [], patience)[0]:
                    raise subprocess.TimeoutExpired(
                        arguments, patience, *(Path(file).read_bytes() for file in files[1:])
                    )
            except BaseException:  # the time limit of a test, too
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                self._process.stdout.readline()
                raise
            code = int(self._process.stdout.readline())
            out, err = (Path(file).read_text() for file in files[1:])
        return subprocess.CompletedProcess(arguments, code, out, err)


def _at_import(environment):
    return {name: value for name, value in environment.items() if name.startswith(AT_IMPORT)}


def _command(arguments, environment, cwd, files):
    """In the forked process: do it, and end."""
    os.environ.clear()
    os.environ.update(environment)
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
        command = json.loads(line)
        if (child := os.fork()) == 0:
            _command(*command)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
