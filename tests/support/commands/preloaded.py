"""`robot-rl` commands as processes of their own that have everything imported: importing takes most of a short one.

A process that has imported what commands import is forked for each. What a command starts, such as a learner, is a
program of its own as ever. Not covered: how a fresh interpreter begins, from entry point to the first import, what its
process is called, and how an interpreter takes itself apart at its end; `installed_robot_rl` has that, and so have
tests that call the program themselves.

`python preloaded.py N` is that process. Over the socket of number N it is told each command, with descriptors for
standard input, output and error and for the exit code; it answers the number of the new process.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading

_codes = []
"""With which a command ends, in its process."""


@atexit.register  # the first, so the last that runs: threads have ended, and what else is done at an end is done
def _end():
    """Taking all modules apart would take most of the time of a short command."""
    if _codes and isinstance(_codes[0], int):
        with contextlib.suppress(OSError):  # nobody reads: the interpreter says so
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_codes[0])


import robot_rl.cli.main  # noqa: E402

MODULES = (
    *("robot_rl.cell.robot_place", "robot_rl.run.train", "robot_rl.run.conclude", "robot_rl.run.evaluate_run"),
    *("robot_rl.doctor.command", "robot_rl.commission.session", "robot_rl.viz.learning_curve", "robot_rl.viz.film"),
    *("robot_rl.learn.algorithms.sac", "robot_rl.hil.local_operator", "robot_rl.unattended.training"),
    *("torch.utils.tensorboard", "scipy.linalg", "scipy.spatial.transform"),
)
"""What is imported, beside the command line. Not MuJoCo, which opens the graphics card where it is imported."""

AT_IMPORT = ("PYTHON", "OMP_", "MUJOCO_", "PYOPENGL_", "LD_", "MPL", "TORCH")
"""Variables of the environment, by their beginnings, that count while Python starts or imports."""
LENGTH = 4
"""Bytes that tell how long a command is."""


class Preloaded:
    """The process; it ends with this one."""

    def __init__(self, environment):
        self._fixed = _at_import(environment)
        self._socket, other = socket.socketpair()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(other.fileno())],
            pass_fds=(other.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        other.close()

    @property
    def alive(self):
        """Whether it can be told commands."""
        return self._process.poll() is None

    def serves(self, environment):
        """Whether a program started in this environment would have imported the same."""
        return self.alive and _at_import(environment) == self._fixed

    def fork(self, command, descriptors):
        """Fork it, and return the number of the new process."""
        content = json.dumps(command).encode()
        with self._lock:
            try:
                socket.send_fds(self._socket, [len(content).to_bytes(LENGTH)], descriptors)
                self._socket.sendall(content)
                return int(self._socket.recv(LENGTH * 4))
            except BaseException:  # a test's time limit, too: the next command would get the number of this one
                self._process.kill()
                self._process.wait()
                raise


class PreloadedCommand(subprocess.Popen):
    """A command, to be handled as any process, though another one than this is its parent and knows how it ended."""

    def __init__(self, preloaded, arguments, **options):
        self._preloaded = preloaded
        super().__init__(arguments, **options)

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *more):
        *_, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = more[:9]
        streams = [
            own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))
        ]  # where none is given, those of this process
        self._ended, theirs = os.pipe()
        self.pid = self._preloaded.fork([args, dict(env), str(cwd or os.getcwd())], [*streams, theirs])
        self._child_created = True
        os.close(theirs)
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _internal_poll(self, _deadstate=None):
        return self._code(0)

    def _wait(self, timeout):
        if self._code(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _code(self, timeout):
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            self.returncode = int(os.read(self._ended, 16))
            os.close(self._ended)
        return self.returncode


def _at_import(environment):
    return {name: value for name, value in environment.items() if name.startswith(AT_IMPORT)}


def _command(arguments, environment, cwd, streams, others):
    """In the forked process: do it, and end."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for other in (*streams, *others):
        os.close(other)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which this process may have been told to ignore
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = ["robot-rl", *arguments]
    try:
        code = robot_rl.cli.main.main()
    except SystemExit as end:
        code = end.code
    _codes.append(code)
    sys.exit(code)


def main(control):
    for module in MODULES:
        importlib.import_module(module)
    robot_rl.cli.main.command_line()  # which imports the commands of other packages
    gc.collect()
    gc.freeze()  # a collection that looks at all of it would hold up the threads of a command that control an arm
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    ended = {}
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            for child in list(ended):
                if (result := os.waitpid(child, os.WNOHANG))[0]:
                    with open(ended.pop(child), "w") as file:
                        file.write(str(os.waitstatus_to_exitcode(result[1])))
        if control in ready:
            length, given, _, _ = socket.recv_fds(control, LENGTH, 4)
            if not length:
                return
            *streams, end = given
            command = json.loads(_received(control, int.from_bytes(length)))
            if (child := os.fork()) == 0:
                _command(*command, streams, [control.detach(), woken, wake, end, *ended.values()])
            for stream in streams:
                os.close(stream)
            ended[child] = end
            control.sendall(str(child).encode())


def _received(control, count):
    content = b""
    while len(content) < count:
        content += control.recv(count - len(content))
    return content


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
