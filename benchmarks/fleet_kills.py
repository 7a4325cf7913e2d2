"""Kill processes of a fleet at random (SIGKILL), and count rows that were lost, doubled or out of order.

    python benchmarks/fleet_kills.py --out /tmp/kills --robots 4 --kills 200 --every 4

The fleet is run by `robot-rl fleet train`, which starts killed processes again. Now and then the supervisor itself is
killed, and `--resume` continues. At the end the actions in the learner's checkpoint are compared with those in the
stores of the robots, row by row.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fleet"))

from fleets import processes, recorded, remembered

SMALL = {
    "demonstrations": 8,
    "warmup_steps": 50,
    "checkpoint_interval": 200,
    "update_to_data": 1,
    "replay.batch_size": 16,
    "replay.capacity": 1_000_000,
    "sac.hidden_sizes": "[32,32]",
    "evaluation.curve_interval": 0,
    "evaluation.video_episodes": 0,
    "evaluation.episodes": 1,
    "realtime": "true",
    "processes": 2,
}


def main() -> int:
    """Run a fleet, kill, compare; return 1 if a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="reach")
    parser.add_argument("--robots", type=int, default=4)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--every", type=float, default=4.0, help="mean time between two kills [s]")
    parser.add_argument("--supervisor", type=float, default=0.05, help="share of kills that hit the supervisor")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw, killed = random.Random(arguments.seed), dict.fromkeys(("learner", "robot", "supervisor"), 0)
    steps = int(100 * arguments.robots * arguments.every * arguments.kills)  # more than can be played meanwhile
    settings = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "robot_rl", "fleet", "train"]
    begin = [*command, arguments.task, "--robots", str(arguments.robots), "--steps", str(steps), *settings]
    again = [*command, "--resume"]
    fleet = _start([*begin, "--out", str(arguments.out)])
    while sum(killed.values()) < arguments.kills:
        time.sleep(draw.uniform(0.5, 1.5) * arguments.every)
        if fleet.poll() is not None:
            print(f"the supervisor ended with {fleet.returncode}; continuing")
            fleet = _start([*again, "--out", str(arguments.out)])
            continue
        if draw.random() < arguments.supervisor:
            fleet.kill()
            fleet.wait()
            killed["supervisor"] += 1
            time.sleep(3.0)  # its processes save, as their parent is gone
            fleet = _start([*again, "--out", str(arguments.out)])
            continue
        found = processes(fleet.pid)
        if found:
            name = draw.choice(sorted(found))
            os.kill(found[name], signal.SIGKILL)
            killed["learner" if name == "learner" else "robot"] += 1
    time.sleep(20.0)  # in which everything that was killed comes back
    fleet.send_signal(signal.SIGINT)
    code = fleet.wait()
    names = [f"robot{number + 1}" for number in range(arguments.robots)]
    rows, waiting, wrong = 0, 0, []
    for name in names:
        run, learner = arguments.out / "robots" / name, arguments.out / "learner"
        there, kept = recorded(run).astype(np.float32), remembered(learner, name)
        rows, waiting = rows + len(kept), waiting + len(there) - len(kept)
        if not np.array_equal(there[: len(kept)], kept):
            wrong.append(name)
    print(
        f"killed {killed}, {rows} rows at the learner, {waiting} more in stores, exit code {code}, load "
        f"{os.getloadavg()[0]:.1f}: {wrong or 'none lost, doubled or out of order'}"
    )
    return int(bool(wrong))


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    with Path(os.devnull).open("wb") as nowhere:
        return subprocess.Popen(command, stdout=nowhere, stderr=nowhere)


if __name__ == "__main__":
    sys.exit(main())
