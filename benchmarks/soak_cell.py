"""A training on the stand-in for a real arm, under the faults that `soak.py` cannot cause with the simulated one.

    python benchmarks/soak_cell.py --out DIR --minutes 10 --seed 0

Faults of the arm: reflex, emergency stop, lost connection, nothing measured, no forces measured, a clock set back, the
arm pushed out of the box. Between them the camera, the task or the safety node is killed or paused. Unsafe are: a tcp
that moves farther out of the box while nothing holds it, and, while nobody pushes it, a speed above 1.3 times the limit
and motion more than 0.3 s after `safety/stopped` gave a reason. A program stands in for the person: it makes the scene
ready, judges, consents and releases. The seed determines the order of the faults.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from geometry_msgs.msg import PoseStamped, TwistStamped
from pauses import SMALL, Training
from soak import BOX_MARGIN, Soak, Watch, lost_rows
from std_srvs.srv import Trigger

from ros_nodes.bringup.supervisor import PROFILE_VARIABLE
from ros_nodes.bringup.table import FASTDDS_PROFILE, table_folder
from ros_nodes.interface import convert, topics

FIRST, EVERY = 45.0, 30.0
"""When the arm has its first fault, and the time to the next one [s]."""
LATE = 6.0
"""How long after its time a fault may be named [s]; the arm's own start is that of its first pose to a second."""
SETTLES = 1.0
"""Time from the first word of a fault until it holds the arm and is timed [s]."""
OF_ARM = {
    "reflex": "a reflex stopped the arm",
    "estop": "the emergency stop of the arm is pressed",
    "lost": "the connection to the arm is lost",
    "freeze": "pose",
    "wrench": "wrench",
    "clock": "does not rise",
    "pushed": "outside the box",
}
"""What has to be said of each."""
OF_NODES = tuple(
    f"{what} {name}" for what in ("kill", "pause") for name in ("cell_cameras", "cell_task", "cell_safety")
)
JUDGE_EVERY = 4.0
"""Time between two judgements of the person [s]."""


class CellWatch(Watch):
    """As `Watch`, for an arm that may be pushed; and the person."""

    def __init__(self) -> None:
        super().__init__()
        self.pushed, self._outside = False, 0.0
        names = (topics.READY_SERVICE, topics.SUCCESS_SERVICE)
        self._ready, self._success = (self.create_client(kind, name) for name, kind in names)
        self.create_timer(0.5, lambda: self._ask(self._ready))
        self.create_timer(JUDGE_EVERY, lambda: self._ask(self._success))

    def _ask(self, client: Any) -> None:
        if client.service_is_ready():
            client.call_async(Trigger.Request())

    def _take_twist(self, message: TwistStamped) -> None:
        if not self.pushed:
            super()._take_twist(message)

    def _take_pose(self, message: PoseStamped) -> None:
        position = convert.pose_of(message.pose).position
        low, high = np.array(self.limits.box_low), np.array(self.limits.box_high)
        outside = float(np.maximum(np.maximum(low - position, position - high), 0.0).max())
        farther = outside > self._outside + 0.001
        self.poses += 1
        if outside > BOX_MARGIN and farther and not self.stopped and self._outside > 0.05:
            self.unsafe["farther outside the box"] += 1
        self.farthest, self._outside = max(self.farthest, outside), outside


def cell_files(folder: Path, faults: list[tuple[str, float]], max_age: float) -> Path:
    """Write the parameters of the cell, with the faults [s after the start]; return the file."""
    tree = yaml.safe_load((table_folder() / "rehearsal_cell.yaml").read_text())
    tree["/**/robot_node"]["ros__parameters"]["faults"] = [f"{kind}@{at:g}" for kind, at in faults]
    for node in ("robot_node", "safety_node", "actor_node"):
        tree.setdefault(f"/**/{node}", {"ros__parameters": {}})["ros__parameters"]["max_age"] = max_age
    tree["/**/actor_node"]["ros__parameters"].update(max_skew=max_age, operator_timeout=max_age)
    folder.mkdir(parents=True)
    (folder / "cell.yaml").write_text(yaml.safe_dump(tree))
    return folder / "cell.yaml"


class Cell(Training):
    """`robot-rl up robot --driver standin` in a process of its own."""

    def __init__(self, out: Path, domain: int, seed: int, params: Path) -> None:
        self._files = ("--params", str(params), "--task_file", str(table_folder() / "rehearsal.yaml"))
        super().__init__(out, domain, seed)

    def command(self, out: Path) -> list[str]:
        """Return what is run."""
        flags = ["robot", "--driver", "standin", "--task", "touch", *self._files, "--out", str(out)]
        return [*flags, "--settings", *SMALL, "demonstrations=0", "warmup_steps=20", "env_steps=1000000"]


def main() -> None:
    """Run the benchmark as the arguments request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domain", type=int, default=95)
    parser.add_argument("--max-age", type=float, default=0.2, help="of measurements [s]; more on a busy machine")
    arguments = parser.parse_args()
    os.environ.update(ROS_DOMAIN_ID=str(arguments.domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    os.environ.setdefault(PROFILE_VARIABLE, str(table_folder() / FASTDDS_PROFILE))
    rng = random.Random(arguments.seed)
    times = np.arange(FIRST, 60.0 * arguments.minutes, EVERY).tolist()
    kinds = [kind for _ in range(len(times) // len(OF_ARM) + 1) for kind in rng.sample(sorted(OF_ARM), len(OF_ARM))]
    faults = list(zip(kinds, times, strict=False))
    cell = Cell(
        arguments.out / "run", arguments.domain, arguments.seed, cell_files(arguments.out, faults, arguments.max_age)
    )
    rclpy.init(args=[])
    watch = CellWatch()
    soak, unnamed, slow, count = Soak(cell, watch, rng), 0, 0, 0

    def put(what: str, expected: str, line: int, deadline: float) -> None:
        """Wait until the fault is named, and heal it."""
        nonlocal unnamed, slow, count
        named = False
        while not named and time.monotonic() < deadline:
            soak.spin(0.1)
            named = any(expected in text for text in [watch.stopped, *watch.said, *cell.lines[line:]])
        soak.spin(SETTLES)
        began = time.monotonic()
        took = soak.heal(began)
        count, unnamed, slow = count + 1, unnamed + (not named), slow + (took is None or took > 10.0)
        whole = f"whole after {took:.1f} s" if took is not None else f"NOT whole: {watch.missing(began)}"
        print(f"{count} {what}: {'named' if named else 'NOT NAMED'}, {whole}, {dict(+watch.unsafe)}", flush=True)

    try:
        while not watch.poses and cell.process.poll() is None:
            soak.spin(0.1)
        began = time.monotonic()
        if soak.heal(began) is None:
            raise SystemExit("the training does not start:\n" + "".join(cell.lines[-20:]))
        for kind, at in faults:
            watch.said.clear()
            line, due = len(cell.lines), began + at
            if due - time.monotonic() > 0.7 * EVERY:
                what, _, name = rng.choice(OF_NODES).partition(" ")
                process = cell.pid(name)
                os.kill(process, signal.SIGKILL if what == "kill" else signal.SIGSTOP)
                soak.spin(2.5 if what == "pause" else 0.0)
                os.kill(process, signal.SIGCONT) if what == "pause" else None
                expected = f"[{name}] has ended with SIGKILL" if what == "kill" else "this process has stood still for"
                put(f"{what} {name}", expected, line, time.monotonic() + 5.0)
            soak.spin(max(0.0, due - time.monotonic() - 2.0))
            watch.said.clear()
            watch.pushed = kind == "pushed"
            put(kind, OF_ARM[kind], len(cell.lines), due + LATE)
            watch.pushed = False
    finally:
        cell.process.send_signal(signal.SIGINT)
        cell.process.wait(60)
    lost, recorded = lost_rows(arguments.out / "run")
    print(
        f"{count} faults (seed {arguments.seed}), load {os.getloadavg()[0]:.1f}: {unnamed} not named, {slow} over 10 s"
    )
    print(f"{recorded} steps recorded, {lost} of them not at the learner", end="; ")
    print(f"unsafe: {dict(+watch.unsafe) or 'none'} of {watch.poses} poses, fastest {watch.fastest:.3f} m/s")


if __name__ == "__main__":
    main()
