"""Random pauses of each node of a training in real time (SIGSTOP, then SIGCONT): time until the graph is whole again.

    python benchmarks/pauses.py --out DIR --pauses 20 --shortest 3 --longest 8 --seed 0

Whole means that after the end of the pause a command reached the arm, a step was acknowledged by the learner, and the
safety node reports nothing. The seed determines nodes, lengths and distances of the pauses.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import rclpy
from rclpy.node import Node
from std_msgs.msg import String, UInt8MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory

from ros_nodes.bringup.supervisor import PROFILE_VARIABLE
from ros_nodes.bringup.table import FASTDDS_PROFILE, table_folder
from ros_nodes.interface import qos, topics

NODES = ("sim", "safety", "teleop", "recorder", "learner", "actor")
LIMIT = 10.0
"""Within which the graph has to be whole [s]."""
GIVEN_UP = 150.0
SMALL = ("replay.batch_size=16", "sac.hidden_sizes=[32,32]", "evaluation.episodes=2", "evaluation.curve_interval=0")


class Observer(Node):
    """Keeps when each sign of a whole graph was last seen."""

    def __init__(self) -> None:
        super().__init__("observer")
        self.stopped, self.commanded, self.learned = "not heard yet", 0.0, 0.0
        self.create_subscription(String, topics.STOPPED.name, self._take_stopped, qos.LATCHED)
        self.create_subscription(MultiDOFJointTrajectory, topics.SAFE_COMMAND.name, self._take_command, qos.COMMAND)
        self.create_subscription(UInt8MultiArray, topics.TO_ACTOR.name, self._take_answer, qos.STREAM)

    def whole_since(self, since: float) -> bool:
        """Return whether every sign has been seen since then."""
        return not self.stopped and min(self.commanded, self.learned) > since

    def missing(self, since: float) -> str:
        """Return what has not been seen since then."""
        seen = {"a command": self.commanded, "the learner": self.learned}
        return ", ".join([*(name for name, at in seen.items() if at <= since), *filter(None, [self.stopped])])

    def _take_stopped(self, message: String) -> None:
        self.stopped = message.data

    def _take_command(self, message: MultiDOFJointTrajectory) -> None:
        if message.points:
            self.commanded = time.monotonic()

    def _take_answer(self, message: UInt8MultiArray) -> None:
        self.learned = time.monotonic()


class Training:
    """`robot-rl up train` in a process of its own, and the processes of its nodes."""

    def __init__(self, out: Path, domain: int, seed: int) -> None:
        command = [sys.executable, "-m", "robot_rl", "up", *self.command(out)]
        arguments = ["--seed", str(seed), "--domain", str(domain)]
        self.process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def command(self, out: Path) -> list[str]:
        """Return which bringup is started, with its flags."""
        settings = [*SMALL, "demonstrations=1", "warmup_steps=20", "env_steps=1000000", "checkpoint_interval=200"]
        return ["train", "--task", "reach", "--out", str(out), "--settings", *settings]

    def pid(self, name: str) -> int:
        """Return the newest process of a node."""
        started = re.compile(rf"\[{name}\] started, process (\d+)")
        return int([match for match in map(started.match, self.lines) if match][-1][1])

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.lines.append(line)


def main() -> None:
    """Run the benchmark as the arguments request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pauses", type=int, default=20, help="of each node")
    parser.add_argument("--nodes", nargs="*", default=NODES)
    parser.add_argument("--shortest", type=float, default=3.0)
    parser.add_argument("--longest", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domain", type=int, default=93)
    arguments = parser.parse_args()
    os.environ.update(ROS_DOMAIN_ID=str(arguments.domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    os.environ.setdefault(PROFILE_VARIABLE, str(table_folder() / FASTDDS_PROFILE))
    rng = random.Random(arguments.seed)
    pauses = [name for name in arguments.nodes for _ in range(arguments.pauses)]
    rng.shuffle(pauses)
    training = Training(arguments.out, arguments.domain, arguments.seed)
    rclpy.init(args=[])
    observer = Observer()

    def spin(seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            rclpy.spin_once(observer, timeout_sec=left)

    def heal(since: float, limit: float) -> float | None:
        while time.monotonic() - since < limit:
            spin(0.05)
            if observer.whole_since(since):
                return time.monotonic() - since
        return None

    try:
        if heal(time.monotonic(), GIVEN_UP) is None:
            raise SystemExit("the training does not start:\n" + "".join(training.lines[-20:]))
        late = 0
        for number, name in enumerate(pauses):
            spin(rng.uniform(1.0, 4.0))
            length, first_line = rng.uniform(arguments.shortest, arguments.longest), len(training.lines)
            process = training.pid(name)
            os.kill(process, signal.SIGSTOP)
            spin(length)
            os.kill(process, signal.SIGCONT)
            since = time.monotonic()
            took = heal(since, GIVEN_UP)
            late += took is None or took > LIMIT
            found = "NOT whole: " + observer.missing(since) if took is None else f"whole after {took:.1f} s"
            print(f"{number + 1}/{len(pauses)} {name} paused for {length:.1f} s: {found}", flush=True)
            if took is None or took > LIMIT:
                print("".join("    " + line for line in training.lines[first_line:][-12:]), end="")
            if took is None:
                break
        print(f"{late} of {len(pauses)} took longer than {LIMIT:g} s (seed {arguments.seed})")
    finally:
        training.process.send_signal(signal.SIGINT)
        training.process.wait(30)


if __name__ == "__main__":
    main()
