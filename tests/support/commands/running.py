"""Starts `robot-rl` as a user does, on runs so small that they end within seconds."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO

import torch
from preloaded import Preloaded, PreloadedCommand

from robot_rl.learn.checkpoint import load_checkpoint

ROBOT_RL = str(Path(sys.executable).with_name("robot-rl"))

SMALL = (
    *("--steps", "120", "--episodes", "3"),
    *("--set", "demonstrations=2", "--set", "warmup_steps=20", "--set", "checkpoint_interval=60"),
    *("--set", "update_to_data=2", "--set", "replay.batch_size=16", "--set", "sac.hidden_sizes=[32, 32]"),
    *("--set", "evaluation.curve_interval=80", "--set", "evaluation.curve_episodes=2"),
    *("--set", "evaluation.video_episodes=0"),
)
"""Flags of a training that learns nothing, but does everything else."""


def environment(**variables: str) -> dict[str, str]:
    """One thread: more would wait for each other on a busy machine."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", **variables}


@contextlib.contextmanager
def one_thread():
    """The same for what computes in this process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def ros_domain() -> int:
    """A ROS domain that no other process of tests on this machine has, as long as this one lives.

    It is below 101, so that the ports are not those that the system gives out.
    """
    for number in range(90):
        domain = 10 + (os.getpid() + number) % 90
        file = (Path(tempfile.gettempdir()) / f"robot_rl-test-domain-{domain}.lock").open("w", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        _HELD.append(file)
        return domain
    raise RuntimeError("all 90 ROS domains for tests are taken")


_HELD: list[IO[str]] = []


PATIENCE = 280.0
"""Longest time for a command [s]."""


def robot_rl(*arguments: object, env=None, cwd=None, input="") -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, with standard output and standard error apart.

    That of `up`, which supervises processes for hours, is the installed program; others are forked from a process that
    has imported what they need.
    """
    env = env or environment()
    if arguments[:1] == ("up",) or not (preloaded := _preloaded()).serves(env):
        return installed_robot_rl(*arguments, env=env, cwd=cwd, input=input)
    command = list(map(str, arguments))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with PreloadedCommand(preloaded, command, **pipes, text=True, env=env, cwd=cwd) as process:
        try:
            out, err = process.communicate(input, PATIENCE)
        except BaseException:  # the time limit of a test, too
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def installed_robot_rl(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """The same with the installed program, from its first import on."""
    command = [ROBOT_RL, *map(str, arguments)]
    options = {"env": environment()} | options
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, **options)


def _preloaded() -> Preloaded:
    if not _PRELOADED or not _PRELOADED[-1].alive:
        _PRELOADED.append(Preloaded(environment()))
    return _PRELOADED[-1]


_PRELOADED: list[Preloaded] = []


def start(*arguments: object, **streams: IO[str] | int) -> subprocess.Popen[str]:
    """Starts a command, forked as well; its standard error can be read line by line, and Ctrl-C reaches it."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | streams
    return PreloadedCommand(_preloaded(), list(map(str, arguments)), **streams, env=environment())


def wait_for(what: Callable[[], object], process: subprocess.Popen[str], patience: float = 120.0) -> None:
    """Waits until that is so, for `patience` [s] at most; a command that has ended before is shown with its errors."""
    deadline = time.monotonic() + patience
    while not what():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)


def listen_to_ctrl_c() -> None:
    """For `preexec_fn` of a process that shall be stopped by Ctrl-C.

    A shell has its background jobs ignore Ctrl-C, and so would what they start, such as these tests.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what is in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def learned(run: Path) -> dict[str, torch.Tensor]:
    """All parameters in a run's checkpoint, of what learns and of what is deployed."""
    checkpoint = load_checkpoint(run / "checkpoint.pt")
    modules = {**checkpoint["learner"]["algorithm"]["modules"], "deployed": checkpoint["deployed"]["policy"]}
    return {f"{name}.{key}": value for name, module in modules.items() for key, value in module.items()}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of parameters are equal bit for bit."""
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def timeless(record: dict) -> dict:
    """A record without what depends on the machine's speed, on when and from where it was made."""
    vary = {"wall_s", "learning_wall_s", "steps_per_s", "updates_per_s", "provenance", "git_revision", "timing"}
    vary |= {"journal_queue_peak", "not_journalled"}
    return {key: value for key, value in record.items() if key not in vary}
