"""The same sweep twice, once killed at random (SIGKILL of the sweep or of a trial) and continued: are the tables equal?

python benchmarks/sweep_kills.py --out /tmp/sweeps --budget 20 --kills 5
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

SPACE = """
space:
  sac.learning_rate: {low: 1.0e-4, high: 3.0e-3, log: true}
  update_to_data: [1, 2, 4]
  replay.demo_fraction: {low: 0.25, high: 0.75}
settings:
  demonstrations: 3
  warmup_steps: 20
  checkpoint_interval: 60
  replay.batch_size: 16
  sac.hidden_sizes: [32, 32]
  evaluation.episodes: 10
  evaluation.curve_interval: 0
  evaluation.video_episodes: 0
"""


def main() -> int:
    """Run both, compare; return 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="reach")
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--every", type=float, default=25.0, help="mean time between two kills [s]")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    space = arguments.out / "space.yaml"
    space.write_text(SPACE)
    command = [sys.executable, "-m", "robot_rl", "sweep", arguments.task, "--space", str(space), "--eta", "2"]
    command += ["--rungs", "2", "--jobs", "2", "--budget", str(arguments.budget), "--steps", str(arguments.steps)]
    draw, killed = random.Random(arguments.seed), {"sweep": 0, "trial": 0}
    started = time.monotonic()
    while True:
        sweep = _start([*command, "--out", str(arguments.out / "killed")])
        due = time.monotonic() + draw.uniform(0.5, 1.5) * arguments.every
        while sweep.poll() is None and (time.monotonic() < due or sum(killed.values()) >= arguments.kills):
            time.sleep(0.1)
        if sweep.poll() is not None:
            if sweep.returncode == 0:
                break
            continue  # a trial was killed: it failed, and the same command plays it again
        victims = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()
        victims += [
            pid for task in Path(f"/proc/{sweep.pid}/task").iterdir() for pid in (task / "children").read_text().split()
        ]
        os.kill(sweep.pid, signal.SIGKILL)
        sweep.wait()
        killed["sweep"] += 1
        for pid in set(victims):
            try:
                os.kill(int(pid), signal.SIGKILL)
                killed["trial"] += 1
            except ProcessLookupError:
                pass
    print(f"killed {killed} in {time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    _start([*command, "--out", str(arguments.out / "whole")]).wait()
    tables = [json.loads((arguments.out / name / "sweep.json").read_text())["rounds"] for name in ("killed", "whole")]
    scores = [one for round_ in tables[1] for rung in round_["rungs"] for one in rung.values()]
    print(
        f"tables {'equal' if tables[0] == tables[1] else 'differ'}; {len(scores)} scores, {len(set(scores))} different"
    )
    return int(tables[0] != tables[1])


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
