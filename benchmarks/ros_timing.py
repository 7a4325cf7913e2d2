"""Training over topics in real time: success, timing of control, and CPU time of each node.

    python benchmarks/ros_timing.py --out DIR [--task peg_insert] [--seed 0] [--domain 42] [KEY=VALUE ...]

Starts `robot-rl up train` with two cameras and a bag of stamps beside it, and prints, as JSON:

- `success_rate` on the held-out resets, and its interval;
- `period_error_ms` between commands of an episode, and `observation_to_action_ms`, from the measurement to the command;
- `camera_to_command_ms`: age, when a command went out, of the newest frame that had come before its observation; that
  a simulated frame is already `camera_delay_ms` old when the camera has it, is part of this age;
- `hand_to_command_ms`: age of the operator's newest input when a command went out that follows it;
- `frames`: of each camera, frames that came and, by their stamps, frames that are missing;
- `cpu`: of each node, seconds of a core per second.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mcap_ros2.reader import read_ros2_messages

from robot_rl.run.control_timing import spread
from sim.sensing import Sensing

CAMERAS = ("front", "wrist")
FRAME_RATE = 30.0
"""Of the simulated cameras [Hz]."""
TICK = os.sysconf("SC_CLK_TCK")
STARTED = re.compile(r"\[(\w+)\] started, process (\d+)")


class Usage:
    """CPU time of processes, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last: dict[int, tuple[str, float]] = {}
        self._begin = time.monotonic()

    def started(self, name: str, pid: int) -> None:
        """Register a started node."""
        self._last[pid] = name, 0.0

    def sample(self) -> None:
        """Sample the CPU times; what a process uses after its last sample is lost when it ends."""
        for pid, (name, before) in list(self._last.items()):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            taken = (int(fields[11]) + int(fields[12])) / TICK
            self.seconds[name] = self.seconds.get(name, 0.0) + taken - before
            self._last[pid] = name, taken

    def shares(self) -> dict[str, float]:
        """Return the CPU time per second of each node [s]."""
        elapsed = time.monotonic() - self._begin
        return {name: round(seconds / elapsed, 3) for name, seconds in sorted(self.seconds.items())}


def train(out: Path, task: str, seed: int, domain: int, settings: list[str]) -> Usage:
    """Run the training; the output of its nodes goes to `log.txt`."""
    out.mkdir(parents=True)
    names = ["command", "intervention", *(f"camera/{name}/camera_info" for name in CAMERAS)]
    parameters = {"recorder_node": {"ros__parameters": {"folder": str(out / "bags"), "topics": names}}}
    (out / "params.yaml").write_text(json.dumps(parameters))
    command = [sys.executable, "-m", "robot_rl", "up", "train", "--task", task, "--seed", str(seed), "--record"]
    command += ["--cameras", *CAMERAS, "--params", str(out / "params.yaml"), "--domain", str(domain)]
    command += ["--out", str(out / "run"), "--settings", *settings]
    usage = Usage()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            usage.sample()

    threading.Thread(target=watch, daemon=True).start()
    assert process.stderr is not None
    with (out / "log.txt").open("w") as log:
        for line in process.stderr:
            log.write(line)
            if found := STARTED.match(line):
                usage.started(found[1], int(found[2]))
    ended.set()
    if process.wait() != 0:
        raise SystemExit(f"the training ended with {process.returncode}; see {out / 'log.txt'}")
    return usage


def timing(bag: Path, period: float, reaction: float) -> dict[str, Any]:
    """Compute the timing figures from the bag."""
    rows: dict[str, list[tuple[float, float, bool]]] = {}
    for topic, came, message in _messages(bag):
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        counts = bool(message.points) if topic == "command" else bool(getattr(message, "buttons", [True])[0])
        rows.setdefault(topic, []).append((stamp, came, counts))
    sent, moves = (np.array([row[column] for row in rows["command"]]) for column in (0, 2))
    within = moves[1:] & moves[:-1]  # a stop ends each episode
    commands = sent[moves]
    found: dict[str, Any] = {
        "period_error_ms": spread([1e3 * np.abs(np.diff(sent)[within] - period)]),
        "camera_delay_ms": 1e3 * Sensing().camera_delay,
    }
    age, leads = _newest(rows["intervention"], commands)
    found["hand_to_command_ms"] = spread([1e3 * age[leads]])
    found["camera_to_command_ms"], found["frames"] = {}, {}
    for name in CAMERAS:
        frames = rows[f"camera/{name}/camera_info"]
        age, _ = _newest(frames, commands - reaction)
        found["camera_to_command_ms"][name] = spread([1e3 * (age + reaction)])
        steps = np.diff([stamp for stamp, _, _ in frames]) * FRAME_RATE
        found["frames"][name] = {"came": len(frames), "missing": int(np.maximum(np.round(steps) - 1, 0).sum())}
    return found


def _messages(bag: Path) -> Iterator[tuple[str, float, Any]]:
    for message in read_ros2_messages(str(bag)):
        yield message.channel.topic.strip("/"), message.log_time_ns / 1e9, message.ros_msg


def _newest(rows: list[tuple[float, float, bool]], times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the age of the newest message at each time [s], and whether it is valid."""
    stamps, came, counts = (np.array(column) for column in zip(*rows, strict=True))
    index = np.searchsorted(came, times) - 1
    known = index >= 0
    return times[known] - stamps[index[known]], counts[index[known]]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="new directory for the run, its bag and its log")
    parser.add_argument("--task", default="peg_insert")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domain", type=int, default=42, help="ROS domain")
    parser.add_argument("--period", type=float, default=0.1, help="control period of the task [s]")
    parser.add_argument("--reaction", type=float, default=0.05, help="`reaction_time` of the settings [s]")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    a = parser.parse_args()
    settings = [*a.settings, f"reaction_time={a.reaction}"]
    usage = train(a.out, a.task, a.seed, a.domain, settings)
    (bag,) = (a.out / "bags").glob("*.mcap")
    summary = json.loads((a.out / "run" / "summary.json").read_text())
    figures = {key: summary[key] for key in ("success_rate", "success_ci95", "env_steps", "robot_minutes")}
    figures["observation_to_action_ms"] = summary["timing"]["observation_to_action_ms"]
    print(json.dumps({**figures, **timing(bag, a.period, a.reaction), "cpu": usage.shares()}, indent=1))


if __name__ == "__main__":
    main()
