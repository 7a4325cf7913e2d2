"""Kill processes of a fleet whose robots are partly behind ROS topics, and count rows lost, doubled or out of order.

    python benchmarks/fleet_topic_kills.py --out /tmp/kills --processes 2 --topics 2 --kills 100 --every 7

Robots `p1`... are processes, robots `t1`... bring-ups of ROS nodes, each in a domain of its own. A kill (SIGKILL) hits
the learner, a robot's process, the actor of a bring-up, another of its nodes, its supervisor, or all of it at once, as
where a machine loses its power. Whatever does not start itself again is started again here, as a service manager does.
At the end the actions in the learner's checkpoint are compared with those in the stores of the robots, row by row.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fleet_kills import SMALL

from robot_rl.config.load import load_config
from robot_rl.fleet.plan import FleetPlan, FleetRobot
from robot_rl.run.directory.run_directory import RunDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fleet"))

from fleets import recorded, remembered

AGAIN_AFTER = 1.0
"""From the end of a process to its next start [s]."""


class Member:
    """A process that is started again when it has ended: the learner, a robot, or the bring-up of one."""

    def __init__(self, name: str, command: Sequence[str], run: Path, logs: Path, resume: Sequence[str]) -> None:
        self.name, self.run = name, run
        self._command, self._resume = list(command), list(resume)
        self._log = (logs / f"{name}.log").open("ab")
        self.errors: list[int] = []
        self._ended_at = 0.0
        self.process = self._start()

    def look(self) -> None:
        """Start it again a moment after its end; note an end by an error."""
        code = self.process.poll()
        if code is None:
            return
        if not self._ended_at:
            self._ended_at = time.monotonic()
            if code >= 0:
                self.errors.append(code)
        elif time.monotonic() - self._ended_at >= AGAIN_AFTER:
            self._ended_at = 0.0
            self.process = self._start()

    def nodes(self) -> dict[int, str]:
        """Return running children by process id, with the name of the node that each of them is."""
        found = {}
        for pid in _children(self.process.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if names := [word.rpartition(".")[2] for word in words if word.rpartition(".")[2].endswith("_node")]:
                found[pid] = names[0]
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        resumed = self._resume if RunDirectory.holds_run(self.run) else []
        return subprocess.Popen([*self._command, *resumed], stdout=self._log, stderr=self._log)


def _children(pid: int) -> list[int]:
    """Return the children of a process; none of one that has ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def kill_one(members: dict[str, Member], draw: random.Random) -> str:
    """Kill something at random; return what it was, or nothing where that does not run at the moment."""
    name = draw.choice(sorted(members))
    member, kind = members[name], "learner" if name == "learner" else "robot"
    if member.process.poll() is not None:
        return ""
    if not name.startswith("t"):
        member.process.kill()
        return kind
    nodes = member.nodes()
    kind = draw.choices(("actor", "node", "bringup", "machine"), (5, 3, 1, 1))[0]
    if kind in ("bringup", "machine"):
        member.process.kill()
        victims = list(nodes) if kind == "machine" else []
    else:
        fitting = [pid for pid, node in nodes.items() if (node == "actor_node") == (kind == "actor")]
        if not fitting:
            return ""
        victims = [draw.choice(fitting)]
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return kind


def main() -> int:
    """Run a fleet, kill, compare; return 1 if a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="reach")
    parser.add_argument("--processes", type=int, default=2, help="robots that are a process each")
    parser.add_argument("--topics", type=int, default=2, help="robots behind topics")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--every", type=float, default=7.0, help="mean time between two kills [s]")
    parser.add_argument("--domain", type=int, default=60, help="ROS domain of the first robot behind topics")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    out, draw = arguments.out, random.Random(arguments.seed)
    (out / "logs").mkdir(parents=True)
    robots = [f"p{n + 1}" for n in range(arguments.processes)] + [f"t{n + 1}" for n in range(arguments.topics)]
    steps = int(100 * len(robots) * arguments.every * arguments.kills)  # more than can be played meanwhile
    settings = {"task": arguments.task, "env_steps": steps, **SMALL}
    config = load_config(None, [f"{key}={value}" for key, value in settings.items()])
    plan = out / "fleet.yaml"
    FleetPlan(config, {name: FleetRobot() for name in robots}, {}).write(plan)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    program, again = [sys.executable, "-m", "robot_rl"], ["--resume"]
    at = ["--plan", str(plan)]

    def member(name: str) -> Member:
        run = out / name
        if name == "learner":
            command = ["fleet", "learner", *at, "--listen", address, "--out", str(run)]
        elif name.startswith("p"):
            command = ["fleet", "robot", name, *at, "--learner", address, "--out", str(run)]
        else:
            domain = str(arguments.domain + robots.index(name))
            command = ["up", "train", "--task", arguments.task, "--domain", domain, "--out", str(run)]
            command += ["--fleet", str(plan), "--fleet_robot", name, "--fleet_learner", address]
        return Member(name, [*program, *command], run, out / "logs", [] if name.startswith("t") else again)

    members = {name: member(name) for name in ("learner", *robots)}
    killed: Counter[str] = Counter()
    while killed.total() < arguments.kills:
        until = time.monotonic() + draw.uniform(0.5, 1.5) * arguments.every
        while time.monotonic() < until:
            for one in members.values():
                one.look()
            time.sleep(0.1)
        if kind := kill_one(members, draw):
            killed[kind] += 1
            print(f"{killed.total()}: {kind}", flush=True)
    until = time.monotonic() + 60.0  # in which everything that was killed comes back
    while time.monotonic() < until:
        for one in members.values():
            one.look()
        time.sleep(0.1)
    for group in (robots, ["learner"]):
        for name in group:
            members[name].process.send_signal(signal.SIGINT)
        for name in group:
            members[name].process.wait(180.0)
    rows, waiting, wrong = Counter[str](), 0, []
    for name in robots:
        there, kept = recorded(members[name].run).astype(np.float32), remembered(members["learner"].run, name)
        rows["topics" if name.startswith("t") else "processes"] += len(kept)
        waiting += len(there) - len(kept)
        if not np.array_equal(there[: len(kept)], kept):
            wrong.append(name)
    errors = {name: one.errors for name, one in members.items() if one.errors}
    print(
        f"killed {dict(killed)}, rows at the learner {dict(rows)}, {waiting} more in stores, errors {errors}, "
        f"load {os.getloadavg()[0]:.1f}: {wrong or 'none lost, doubled or out of order'}"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
