"""Cost of a labeller on the same machine for a control loop in real time.

    python benchmarks/labeller_cost.py --head runs/protocol/bundled-success.pt --out runs/labeller_cost [--blocks 20]

The operator controls the simulated arm in real time, both cameras are recorded, and `robot-rl label watch` labels every
episode, on the same cores. Blocks of episodes alternate: with the labeller, and with its process stopped, so that both
have the same machine load; episodes recorded meanwhile are labelled in the next block with it. The output, as JSON: the
spread of the period's error with and without, the difference of the p99 and its interval by resampling whole blocks,
and labels per second, lag, cost and the share of cached labels.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

import numpy as np

from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.reward.vlm.head_backend import read_head
from robot_rl.run.control_timing import ControlTiming, spread
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.system.progress import Progress

TASK, CAMERAS = "peg_insert", ("front", "wrist")
REACTION = 0.015
"""From an observation to its command [s]."""
RESAMPLES = 2000


def run(out: Path, head: Path, blocks: int, episodes: int) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return the errors of each block, every other one with the labeller, and the labeller's summary."""
    size = read_head(head).size
    observed = WorkcellOptions(cameras=CAMERAS, image_size=(size, size), realtime=True, reaction_time=REACTION)
    env = RobotEnv(make_workcell(TASK, observed), options=observed)
    found = []
    with EpisodeStore.create(out, {"task": TASK}) as store, Progress(blocks * episodes, "episodes") as shown:
        labeller = _labeller(out, head)
        try:
            for block in range(blocks):
                labeller.send_signal(signal.SIGCONT if block % 2 else signal.SIGSTOP)
                timing = ControlTiming(env.spec_task.control_period)
                rollout = Rollout(env, None, None, (0,), [StoreRecorder(store), timing])
                for number in range(block * episodes, (block + 1) * episodes):
                    reset = episode_seed(Purpose.DEMONSTRATION, 0, number)
                    rollout.play(reset, f"led-{number:04d}", deterministic=True, demonstrate=True)
                    shown.update(number + 1)
                found.append(np.concatenate(timing.period_errors))
        finally:
            labeller.send_signal(signal.SIGCONT)
            time.sleep(5.0)  # for the newest labels
            labeller.send_signal(signal.SIGINT)
            output, _ = labeller.communicate()
            env.close()
    return found, json.loads(output)


def _labeller(store: Path, head: Path) -> subprocess.Popen[str]:
    """Start the labeller and wait until its model is loaded."""
    camera = read_head(head).camera
    settings = ("backend=head", f"head={head}", f"frames.camera={camera}")
    flags = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "robot_rl", "label", "watch", str(store), *flags, "--json"]
    labeller = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert labeller.stderr is not None
    for line in labeller.stderr:
        if "watching" in line:
            return labeller
    raise SystemExit(f"the labeller ended with {labeller.wait()}")


def difference(blocks: list[np.ndarray]) -> dict[str, Any]:
    """Return the spread of the errors with and without, and the difference of the 99th percentiles [ms]."""
    without, beside = blocks[::2], blocks[1::2]

    def p99(parts: list[np.ndarray]) -> float:
        return float(np.percentile(np.concatenate(parts), 99))

    rng = np.random.default_rng(0)
    drawn = [
        p99([beside[i] for i in rng.integers(len(beside), size=len(beside))])
        - p99([without[i] for i in rng.integers(len(without), size=len(without))])
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5]).tolist()
    return {
        "period_error_ms": {"without": spread(without), "with": spread(beside)},
        "p99_difference_ms": {"value": p99(beside) - p99(without), "low": low, "high": high},
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head", type=Path, required=True, help="by `robot-rl label train`")
    parser.add_argument("--out", type=Path, required=True, help="new directory for the episodes")
    parser.add_argument("--blocks", type=int, default=20, help="half of them with the labeller (default: 20)")
    parser.add_argument("--episodes", type=int, default=5, help="of each block (default: 5)")
    a = parser.parse_args()
    blocks, labelled = run(a.out, a.head, a.blocks, a.episodes)
    print(json.dumps({**difference(blocks), "labels": labelled}, indent=1))


if __name__ == "__main__":
    main()
