"""Learning curves over seeds, and the effect of each ingredient.

    python benchmarks/learning.py run peg_insert --seeds 0 1 2 3 4 --jobs 2 --out runs/benchmark
    python benchmarks/learning.py report peg_insert --out runs/benchmark --plot docs/peg_insert.png
    python benchmarks/learning.py run cube_lift --obs pixels --arms full --seeds 0 1 2 --steps 12000

`run` trains every arm with every seed, each in a process of its own, and skips what is already there, so it can be
stopped and continued. `report` prints a table and draws the curves. Seeds 0 to 4 are for testing only; settings were
chosen on seeds from 100 on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from robot_rl.run.directory.metrics import read_metrics
from robot_rl.statistics import bootstrap_interval, interquartile_mean
from robot_rl.viz.learning_curve import compare_curves

WITHOUT_IMITATION = ["--set", "sac.imitation=0"]
ARMS = {
    "state": {
        "full": [],
        "without imitation": WITHOUT_IMITATION,
        "without interventions": ["--set", "intervention.enabled=false"],
        "without demonstrations": ["--set", "demonstrations=0"],
    },
    "pixels": {
        "full": [],
        "without imitation": WITHOUT_IMITATION,
        "random encoder": ["--set", "encoder.name=random"],
        "one crop": ["--set", "encoder.crops=1"],
        "no projection": ["--set", "encoder.projection=0"],
        "float32": ["--set", "engine.precision=float32"],
        "HL-Gauss": ["--set", "sac.critic_loss=hl_gauss"],
        "without the way to the goal": ["--set", "sac.goal_weight=0"],
    },
}
"""What is changed against the defaults, by what is observed and the label of the curve."""
BASE = {
    "state": [],
    "pixels": ["--obs", "pixels"],
}
"""What all arms have in common."""


def run(arguments: argparse.Namespace) -> None:
    """Train the missing runs, a few at a time."""
    jobs = [(arm, seed) for arm in arguments.arms for seed in arguments.seeds]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for line in pool.map(lambda job: _train(arguments, *job), jobs):
            print(line, flush=True)


def _train(arguments: argparse.Namespace, arm: str, seed: int) -> str:
    path = _path(arguments, arm, seed)
    if not (path / "summary.json").exists():
        command = [sys.executable, "-m", "robot_rl", "train", arguments.task, "--seed", str(seed), "--out", str(path)]
        command += ["--episodes", str(arguments.episodes), "--set", "evaluation.video_episodes=0"]
        command += [*BASE[arguments.obs], *ARMS[arguments.obs][arm]]
        command += ["--steps", str(arguments.steps)] if arguments.steps else []
        command += ["--resume"] if (path / "provenance.json").exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".log").open("a") as log:
            done = subprocess.run(command, stdout=log, stderr=log, check=False)
        if done.returncode:
            return f"{arm}, seed {seed}: failed with exit code {done.returncode}, see {path.with_suffix('.log')}"
    summary = json.loads((path / "summary.json").read_text())
    return f"{arm}, seed {seed}: success {summary['success_rate']:.3f}, cycle {summary['cycle_time_s']} s"


def report(arguments: argparse.Namespace) -> None:
    """Print one row per run and per arm, and draw the curves."""
    groups: dict[str, list[list[dict[str, Any]]]] = {}
    print(
        "| arm | seed | env steps | success (95 % CI) | lateral error, mean, max [mm] | cycle / demos [s] | ratio "
        "| operator first -> last | min |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for arm in arguments.arms:
        rates, ratios = [], []
        for seed, path in _finished(arguments, arm):
            s = json.loads((path / "summary.json").read_text())
            groups.setdefault(arm, []).append(read_metrics(path / "metrics.jsonl"))
            low, high = s["success_ci95"]
            demo, cycle = s["demo_cycle_time_s"], s["cycle_time_s"]
            ratio = cycle / demo if cycle and demo else None
            rates.append(s["success_rate"])
            ratios += [ratio] if ratio else []
            first, last = s["intervention_rate"]["first_tenth"], s["intervention_rate"]["last_tenth"]
            error = s["metrics_at_success"].get("lateral_error")
            print(
                f"| {arm} | {seed} | {s['env_steps']} | {s['success_rate']:.3f} ({low:.3f}-{high:.3f}) "
                f"| {_millimetres(error)} | {_number(cycle)} / {_number(demo)} | {_number(ratio)} "
                f"| {first or 0:.2f} -> {last or 0:.2f} | {s['wall_s'] / 60:.1f} |"
            )
        if len(rates) > 1:
            low, high = bootstrap_interval([rates], interquartile_mean)
            iqm = interquartile_mean(rates)
            print(f"| {arm} | IQM of {len(rates)} | | {iqm:.3f} ({low:.3f}-{high:.3f}) | | | | | |")
    if arguments.plot and groups:
        references = dict(pair.split("=") for pair in arguments.reference)
        compare_curves(
            groups,
            arguments.plot,
            title=f"{arguments.task} from {arguments.obs}: success without help",
            references={label: float(rate) for label, rate in references.items()},
        )


def _millimetres(metric: dict[str, float] | None) -> str:
    return f"{metric['mean'] * 1e3:.2f}, {metric['max'] * 1e3:.2f}" if metric else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _finished(arguments: argparse.Namespace, arm: str) -> Iterator[tuple[int, Path]]:
    for path in sorted(_folder(arguments).glob(f"{arm.replace(' ', '-')}-seed*/summary.json")):
        yield int(path.parent.name.rpartition("seed")[2]), path.parent


def _path(arguments: argparse.Namespace, arm: str, seed: int) -> Path:
    return _folder(arguments) / f"{arm.replace(' ', '-')}-seed{seed}"


def _folder(arguments: argparse.Namespace) -> Path:
    out: Path = arguments.out
    return out / (arguments.task if arguments.obs == "state" else f"{arguments.task}-{arguments.obs}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("task")
    parser.add_argument("--obs", choices=tuple(ARMS), default="state")
    parser.add_argument("--arms", nargs="+", metavar="ARM", help="all of them by default; a wrong one lists them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, help="env steps (default: as `robot-rl train` has it)")
    parser.add_argument("--episodes", type=int, default=300, help="held-out resets at the end")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark"))
    parser.add_argument("--plot", type=Path, help="PNG of the curves")
    parser.add_argument("--reference", nargs="*", default=[], metavar="LABEL=RATE", help="level lines in the plot")
    arguments = parser.parse_args()
    valid = list(ARMS[arguments.obs])
    arguments.arms = arguments.arms or valid
    if unknown := [arm for arm in arguments.arms if arm not in valid]:
        parser.error(f"unknown arm {unknown[0]!r}; valid: {', '.join(valid)}")
    {"run": run, "report": report}[arguments.what](arguments)


if __name__ == "__main__":
    main()
