"""What a training in simulation saves on the robot: steps until the policy succeeds, from scratch and after it.

    python benchmarks/sim_to_real.py --out /tmp/sim_to_real --seeds 0 1 2 3 4

The robot is played by another world than the simulation's own, which no training in simulation has seen: closer parts,
other friction, a later command, a biased force sensor. The simulation draws its physics anew for each episode. All runs
on the "robot" have the same demonstrations, seeds and resets. A run that has a result is not played again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robot_rl.statistics import bootstrap_interval, interquartile_mean

WANTED = 0.9
REAL = {"clearance": 0.7, "friction": 1.3, "command_delay": 0.05, "wrench_bias": 1.0}
"""The robot's world."""
DRAWN = {
    "contact_friction": 0.4,
    "stiffness": 0.3,
    "mass": 0.3,
    "joint_friction": 1.0,
    "joint_damping": 0.3,
    "delay": 0.1,
}
"""Widths of the draws in simulation."""
GAP = "dynamics_gap"
KINDS: Mapping[str, Sequence[str]] = {
    "from scratch": (),
    "policy and critics of the simulation": ("policy", "critics"),
    "with its steps, too": ("policy", "critics", "replay"),
    "with its steps, weighed by the dynamics gap": ("policy", "critics", "replay", GAP),
}
"""What is taken over from the simulation, and whether its steps are weighed (H2O)."""


def main() -> None:
    """Run what has no result yet, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="peg_insert")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--sim-steps", type=int, default=15000)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--kinds", type=int, nargs="+", default=range(len(KINDS)), help="which of them, from 0")
    arguments = parser.parse_args()
    kinds = {kind: parts for number, (kind, parts) in enumerate(KINDS.items()) if number in (0, *arguments.kinds)}
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for seed in arguments.seeds:
        for kind, parts in kinds.items():
            rows[kind].append(_on_robot(arguments, seed, kind, parts))
            _print(arguments, rows)


def _print(arguments: argparse.Namespace, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Print the steps and successes of all seeds, and of those that have every kind ratios to those from scratch.

    A training that never succeeds that often counts with all its steps, so ratios to such a one are too high.
    """
    full = min(len(found) for found in rows.values())
    scratch = [row["steps"] or arguments.steps for row in rows["from scratch"][:full]]
    for kind, found in rows.items():
        ends = [row["end"] for row in found]
        print(f"{kind}: steps to {WANTED:.0%}: {[row['steps'] for row in found]}; at the end {ends}")
        if full:
            ratios = [(row["steps"] or arguments.steps) / whole for row, whole in zip(found, scratch, strict=False)]
            print(f"  of the steps from scratch {_with_interval(ratios)}; at the end {_with_interval(ends[:full])}")
    sys.stdout.flush()


def _with_interval(values: Sequence[float]) -> str:
    """Return the interquartile mean and its 95 % interval over seeds."""
    low, high = bootstrap_interval([values])
    return f"{interquartile_mean(values):.3f} ({low:.3f}-{high:.3f})"


def _on_robot(arguments: argparse.Namespace, seed: int, kind: str, parts: Sequence[str]) -> dict[str, Any]:
    """Return the curve of one training on the robot."""
    path = arguments.out / f"{arguments.task}-{seed}-{'-'.join(parts) or 'scratch'}"
    world = [f"world.{name}={value}" for name, value in REAL.items()]
    taken = ",".join(part for part in parts if part != GAP)
    begin = ["--init-from", str(_in_simulation(arguments, seed)), "--init", taken] if parts else []
    weighed = [f"replay.simulated={GAP}"] if GAP in parts else []
    _train(arguments, path, seed, arguments.steps, [*world, *weighed], begin)
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    curve = [(row["env_step"], row["success_rate"]) for row in rows if row["kind"] == "curve"]
    reached = [step for step, success in curve if success >= WANTED]
    end = json.loads((path / "summary.json").read_text())["success_rate"]
    return {"steps": reached[0] if reached else None, "curve": curve, "end": end, "kind": kind}


def _in_simulation(arguments: argparse.Namespace, seed: int) -> Path:
    """Return the run of the training in simulation."""
    path = arguments.out / f"{arguments.task}-{seed}-sim"
    drawn = [f"randomization.dynamics.{name}={value}" for name, value in DRAWN.items()]
    _train(arguments, path, 1000 + seed, arguments.sim_steps, drawn, [])
    return Path(path)


def _train(
    arguments: argparse.Namespace, path: Path, seed: int, steps: int, settings: Sequence[str], begin: Sequence[str]
) -> None:
    """Run a training that has not ended, from where it was."""
    if (path / "summary.json").exists():
        return
    command = [sys.executable, "-m", "robot_rl", "train"]
    if (path / "checkpoint.pt").exists():
        command += ["--resume", "--out", str(path)]
    else:
        curve = [f"evaluation.curve_interval={arguments.every}", f"evaluation.curve_episodes={arguments.episodes}"]
        given = [*settings, *curve, "evaluation.video_episodes=0"]
        command += [arguments.task, "--seed", str(seed), "--steps", str(steps), "--episodes", "200", *begin]
        command += [*(part for setting in given for part in ("--set", setting)), "--out", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
