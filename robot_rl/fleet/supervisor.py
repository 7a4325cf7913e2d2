"""A fleet on this machine: a process for the learner and one for each robot, started again when they are killed.

The supervisor holds the listening socket, so robots find the learner at the same place whichever process serves it, and
those that come while none does wait in the socket's queue.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from robot_rl.config.resuming import resumable_changes
from robot_rl.errors import ConfigError, InterruptedRunError, RobotRLError, RunDirectoryError
from robot_rl.fleet.access import TOKEN_VARIABLE
from robot_rl.fleet.plan import FleetPlan, changed_settings, differences
from robot_rl.fleet.standing import is_finished
from robot_rl.fleet.watched_process import DONE, WatchedProcess
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.statistics import wilson_interval
from robot_rl.system.atomic_file import to_json, write_atomically, writing
from robot_rl.system.checked_json import read_object
from robot_rl.system.child_process import ChildProcess
from robot_rl.system.directory_lock import Lock
from robot_rl.system.process import python_module, stop_on_signal

PLAN, LEARNER, ROBOTS, LOGS, SUMMARY = "fleet.yaml", "learner", "robots", "logs", "summary.json"
"""Files and folders of a fleet's directory."""
_POLL = 0.1
_STOP_LIMIT = 60.0
"""Time for a process to end its episode and to save [s]."""


class FleetError(RobotRLError):
    """A process of the fleet ended for good before its work was done."""


def check_free(path: Path) -> None:
    """Check that a new fleet can be made in a directory.

    Raises:
        RunDirectoryError: if something is there.
    """
    if (path / PLAN).exists():
        raise RunDirectoryError(f"{path} already holds a fleet; add --resume to continue it, or choose another one")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunDirectoryError(f"{path} is not empty and no fleet; choose another directory")


def check_continues(plan: FleetPlan, path: Path) -> None:
    """Check that the runs that a fleet's directory holds can go on with a plan.

    Raises:
        ConfigError: naming the settings that cannot be changed any more.
    """
    runs = {LEARNER: (path / LEARNER, plan.whole())}
    runs |= {name: (path / ROBOTS / name, plan.config_of(name)) for name in plan.robots}
    for name, (run, config) in runs.items():
        if not RunDirectory.holds_run(run):
            continue
        made = RunDirectory.read_config(run)
        changed = differences(made, config)
        if name != LEARNER:
            changed += changed_settings(resumable_changes(made, config), config)
        if changed:
            raise ConfigError(
                f"{path}: the run of {name} was made with other settings of {', '.join(sorted(set(changed)))}; "
                "continue without changing them"
            )


class FleetSupervisor:
    """Runs a whole fleet on this machine.

    Args:
        plan: The fleet, which is written into the directory.
        path: Its directory: `fleet.yaml`, `learner`, `robots/<name>` and `logs`.
        log: Receives a line about each process that ends or is started again.
    """

    def __init__(self, plan: FleetPlan, path: Path, log: Callable[[str], object]) -> None:
        self._plan, self._path, self._log = plan, path, log
        self._stopping = False

    def run(self) -> dict[str, Any]:
        """Run until all robots have played their part; return the summary of the fleet.

        Raises:
            InterruptedRunError: after Ctrl-C; all processes have saved.
            FleetError: if the learner or a robot ended by an error; the others have gone on to their end.
            RunDirectoryError: if another process uses the directory.
            ConfigError: if its processes could not continue with this plan; the old one then stays.
        """
        path = self._path
        with writing(path):
            for folder in (path / LOGS, path / ROBOTS):
                folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(Lock(path / "lock"))
            check_continues(plan := self._plan, path)
            plan.write(path / PLAN)
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
            learner, robots = self._processes(listener, secrets.token_urlsafe(24), stack)
            stack.callback(_end, [*robots, learner])
            with stop_on_signal(self._request_stop):
                self._watch(learner, robots)
            if self._stopping:
                command = f"robot-rl fleet train --resume --out {path}"
                raise InterruptedRunError(f"stopped, and saved; continue with: {command}")
        failed = [process for process in (learner, *robots) if process.ended != DONE]
        if failed:
            reasons = "; ".join(f"{process.name} {process.ended}" for process in failed)
            raise FleetError(f"{reasons}; see {path / LOGS}; go on with: robot-rl fleet train --resume --out {path}")
        summary = fleet_summary(path, self._plan)
        write_atomically(path / SUMMARY, to_json(summary, indent=2) + "\n")
        return summary

    def _processes(
        self, listener: socket.socket, token: str, stack: contextlib.ExitStack
    ) -> tuple[WatchedProcess, list[WatchedProcess]]:
        """Return the learner and the robots, not started yet."""
        address = "{}:{}".format(*listener.getsockname()[:2])
        environment = {**os.environ, TOKEN_VARIABLE: token}

        def child(
            name: str,
            arguments: Sequence[str],
            run: Path,
            inherit: Sequence[int] = (),
            is_done: Callable[[], bool] = lambda: False,
        ) -> WatchedProcess:
            shared = ["--plan", str(self._path / PLAN), "--out", str(run)]
            file = stack.enter_context((self._path / LOGS / f"{name}.log").open("a", encoding="utf-8", buffering=1))

            def relay(line: str) -> None:
                print(line, file=file)
                if name == LEARNER and not line.startswith("{"):  # its answer, which is in `summary.json` too
                    print(line, file=sys.stderr, flush=True)

            def start(resume: bool) -> ChildProcess:
                command = [*python_module("robot_rl"), "fleet", *arguments, *shared, *(["--resume"] if resume else [])]
                return ChildProcess(
                    command, environment=environment, inherit=inherit, on_line=relay, death_signal=signal.SIGTERM
                )

            return WatchedProcess(name, run, start, is_done)

        descriptor = listener.fileno()
        learner = child(LEARNER, ["learner", "--json", "--socket", str(descriptor)], self._path / LEARNER, [descriptor])
        robots = [
            child(
                name,
                ["robot", name, "--learner", address],
                self._path / ROBOTS / name,
                is_done=partial(is_finished, self._path, name, self._plan.config_of(name).env_steps),
            )
            for name in self._plan.robots
        ]
        return learner, robots

    def _watch(self, learner: WatchedProcess, robots: Sequence[WatchedProcess]) -> None:
        """Look after all processes until there is nothing more to do. The learner ends after the robots."""
        stopped: set[str] = set()

        def stop(process: WatchedProcess) -> None:
            if process.running and process.name not in stopped:
                stopped.add(process.name)
                process.stop()

        while True:
            for process in (learner, *robots):
                line = process.look(start=not self._stopping and not learner.ended)
                if line and not self._stopping:
                    self._log(line)
            if self._stopping or (learner.ended and learner.ended != DONE):
                for robot in robots:
                    stop(robot)
            playing = any(robot.running or not (robot.ended or self._stopping or learner.ended) for robot in robots)
            if not playing:
                if self._stopping or any(robot.ended != DONE for robot in robots):
                    stop(learner)  # it would wait for those that are not done
                if not learner.running and (self._stopping or learner.ended):
                    return
            time.sleep(_POLL)

    def _request_stop(self) -> None:
        self._stopping = True
        self._log("stopping: every robot ends its episode, then all save; once more to stop at once")


def fleet_summary(path: Path, plan: FleetPlan) -> dict[str, Any]:
    """Return the result of a fleet from the summaries of its learner and its robots.

    Raises:
        RunDirectoryError: if one of them cannot be read.
    """
    learner = _read(path / LEARNER / SUMMARY)
    robots: dict[str, Any] = {}
    for name in plan.robots:
        own = _read(path / ROBOTS / name / SUMMARY)
        kept = ("env_steps", "episodes", "success_rate", "return_mean", "cycle_time_s", "wall_s")
        robots[name] = {key: own.get(key) for key in kept}
        if own.get("success_rate") is not None:
            successes = round(own["success_rate"] * own["episodes"])
            robots[name]["success_ci95"] = list(wilson_interval(successes, own["episodes"]))
    shown = ("task", "seed", "env_steps", "updates", "utd", "wall_s", "policy")
    return {**{key: learner[key] for key in shown}, "robots": robots}


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"cannot read {path}: {error}") from error


def _end(processes: Sequence[WatchedProcess]) -> None:
    """End what still runs, e.g. after a second Ctrl-C."""
    for process in processes:
        process.stop()
    for process in processes:
        process.join(_STOP_LIMIT)
