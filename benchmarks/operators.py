"""What an operator's habits do to learning: a grid of tasks, profiles and seeds, resumed where it was stopped.

    python benchmarks/operators.py run --tasks peg_hard --profiles ideal late wrong --seeds 100 101 --out runs/operators
    python benchmarks/operators.py report --tasks peg_hard --out runs/operators --plot person.png

`run` trains every missing run, one after the other; `nobody` is a profile without interventions, `called` the ideal
operator that takes over where it is called, and nowhere else. `report` compares each profile with the first one, seed
by seed: the ratio of env steps to a success of 0.9 without help, with a bootstrap interval of its geometric mean, and
the area under the success curve. A run that never reaches 0.9 has no steps to it: the report counts such runs, and no
ratio is formed of them. The plot shows success over minutes of human action.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from robot_rl.config.operator_profile import PROFILES
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.statistics import bootstrap_interval

APART = {
    "nobody": ["intervention.enabled=false"],
    "called": ["intervention.call.rule=doubt", "intervention.call.only=true"],
}
"""Settings of what is no profile of an operator."""
SHOWN = {"ideal": "the operator watches", "called": "the operator comes when called", "nobody": "nobody helps"}
"""Names in the plot, where they differ."""
GOAL = 0.9


def run(arguments: argparse.Namespace) -> None:
    """Train the missing runs; seeds are in the outer loop, so that a stopped grid has pairs."""
    for task in arguments.tasks:
        for seed in arguments.seeds:
            for profile in arguments.profiles:
                print(_train(arguments, task, profile, seed), flush=True)


def _train(arguments: argparse.Namespace, task: str, profile: str, seed: int) -> str:
    path = _path(arguments, task, profile, seed)
    if not (path / "summary.json").exists():
        helped = APART.get(profile, [f"intervention.profile={profile}"])
        settings = ["evaluation.video_episodes=0", *helped, *arguments.set]
        command = [sys.executable, "-m", "robot_rl", "train", task, "--seed", str(seed), "--out", str(path)]
        command += ["--steps", str(arguments.steps), "--episodes", str(arguments.episodes)]
        command += [word for setting in settings for word in ("--set", setting)]
        command += ["--resume"] if (path / "provenance.json").exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".log").open("a") as log:
            done = subprocess.run(command, stdout=log, stderr=log, check=False)
        if done.returncode:
            return f"{task}, {profile}, seed {seed}: failed with exit code {done.returncode}, see {log.name}"
    summary = json.loads((path / "summary.json").read_text())
    seconds = summary["person"]["seconds"]
    return f"{task}, {profile}, seed {seed}: success {summary['success_rate']:.3f}, {seconds:.0f} s of human action"


def report(arguments: argparse.Namespace) -> None:
    """Print one table per task, and draw success over minutes of human action."""
    for task in arguments.tasks:
        runs = {profile: _runs(arguments, task, profile) for profile in arguments.profiles}
        first = arguments.profiles[0]
        print(f"\n{task}, {arguments.steps} env steps; ratios and differences are to {first}, paired by seed\n")
        print(
            f"| profile | seeds | success at the end | area under the curve | steps to {GOAL} | ratio | action [min] |"
        )
        print("|---|---|---|---|---|---|---|")
        for profile, by_seed in runs.items():
            if by_seed:
                print(_row(profile, by_seed, runs[first]))
    if arguments.plot:
        _plot(arguments)


def _row(profile: str, runs: dict[int, Path], reference: dict[int, Path]) -> str:
    curves = {seed: _curve(path) for seed, path in runs.items()}
    ends = [json.loads((path / "summary.json").read_text()) for path in runs.values()]
    reached = {seed: steps for seed, curve in curves.items() if (steps := _steps_to_goal(curve)) is not None}
    others = {seed: _steps_to_goal(_curve(path)) for seed, path in reference.items()}
    pairs = [np.log(steps / other) for seed, steps in reached.items() if (other := others.get(seed)) is not None]
    steps = f"{np.mean(list(reached.values())):.0f} in {len(reached)}" if reached else "never"
    return (
        f"| {profile} | {len(runs)} | {_mean([end['success_rate'] for end in ends])} "
        f"| {_mean([_area(curve) for curve in curves.values()])} | {steps} of {len(runs)} | {_geometric(pairs)} "
        f"| {_mean([end['person']['seconds'] / 60.0 for end in ends])} |"
    )


def _mean(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    low, high = bootstrap_interval([values], np.mean)
    return f"{np.mean(values):.3f} ({low:.3f}-{high:.3f})"


def _geometric(logs: list[float]) -> str:
    """Return the geometric mean of ratios, given their logarithms, with its interval."""
    if not logs:
        return "-"
    mean = np.exp(np.mean(logs))
    if len(logs) == 1:
        return f"{mean:.2f}"
    low, high = np.exp(bootstrap_interval([logs], np.mean))
    return f"{mean:.2f} ({low:.2f}-{high:.2f})"


def _curve(path: Path) -> list[dict[str, Any]]:
    return [record for record in read_metrics(path / "metrics.jsonl") if record["kind"] == "curve"]


def _steps_to_goal(curve: list[dict[str, Any]]) -> int | None:
    return next((int(point["env_step"]) for point in curve if point["success_rate"] >= GOAL), None)


def _area(curve: list[dict[str, Any]]) -> float:
    """Return the mean success over the env steps of the curve, which starts at 0 before learning."""
    steps = np.array([0, *(point["env_step"] for point in curve)], dtype=float)
    rates = np.array([0.0, *(point["success_rate"] for point in curve)])
    return float(np.trapezoid(rates, steps) / steps[-1])


def _minutes_at(path: Path, steps: list[int]) -> list[float]:
    """Return the minutes of human action up to these env steps."""
    episodes = [record for record in read_metrics(path / "metrics.jsonl") if record["kind"] == "episode"]
    known = [record["env_step"] for record in episodes]
    return np.interp(steps, known, [record["person"]["seconds"] / 60.0 for record in episodes]).tolist()


def _plot(arguments: argparse.Namespace) -> None:
    figure = Figure(figsize=(5.5 * len(arguments.tasks), 4.2), layout="constrained")
    for place, task in enumerate(arguments.tasks):
        axes = figure.add_subplot(1, len(arguments.tasks), place + 1)
        for number, profile in enumerate(arguments.profiles):
            for index, path in enumerate(_runs(arguments, task, profile).values()):
                curve = _curve(path)
                minutes = _minutes_at(path, [point["env_step"] for point in curve])
                label = SHOWN.get(profile, profile) if index == 0 else None
                axes.plot(minutes, [p["success_rate"] for p in curve], ".-", color=f"C{number}", alpha=0.8, label=label)
        axes.set_title(task, loc="left")
        axes.set_xlabel("human action, demonstrations included [min]")
        axes.set_ylabel("success without help")
        axes.set_ylim(-0.03, 1.03)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8.5)
    FigureCanvasAgg(figure).print_figure(str(arguments.plot), dpi=130)


def _runs(arguments: argparse.Namespace, task: str, profile: str) -> dict[int, Path]:
    """Return the finished runs by seed."""
    paths = {seed: _path(arguments, task, profile, seed) for seed in arguments.seeds}
    return {seed: path for seed, path in paths.items() if (path / "summary.json").exists()}


def _path(arguments: argparse.Namespace, task: str, profile: str, seed: int) -> Path:
    out: Path = arguments.out
    return out / task / f"{profile}-seed{seed}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--tasks", nargs="+", default=["peg_hard"])
    choices = (*PROFILES, *APART)
    parser.add_argument("--profiles", nargs="+", choices=choices, default=["ideal", "late", "wrong", "nobody"])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(100, 108)), help="tuning seeds by default")
    parser.add_argument("--steps", type=int, default=8000, help="env steps of each run")
    parser.add_argument("--episodes", type=int, default=100, help="held-out resets at the end")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every run")
    parser.add_argument("--out", type=Path, default=Path("runs/operators"))
    parser.add_argument("--plot", type=Path, help="PNG of success over minutes of human action")
    arguments = parser.parse_args()
    {"run": run, "report": report}[arguments.what](arguments)


if __name__ == "__main__":
    main()
