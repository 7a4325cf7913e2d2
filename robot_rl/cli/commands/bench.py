"""`robot-rl bench`: time a part, play a suite of tasks over seeds, or try policies in other worlds."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robot_rl.bench.perturbed.axes import AXES, chosen_axes
from robot_rl.bench.suite.names import TUNING_SEEDS_FROM, check_once, suite_names
from robot_rl.cli.parts.command import (
    BENCH_COMMAND_GROUP,
    MakeParser,
    Reply,
    add_commands,
    flat_lines,
    natural,
    positive,
)
from robot_rl.env.registry import benchmark_names, check_task, run_benchmark
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.system.process import one_thread


def add_bench_commands(commands: Any, make: MakeParser) -> None:
    """Add a command for each benchmark, and `suite`."""
    for name in benchmark_names():
        make(commands, name, _timing(name), f"time: {name}", example=f"robot-rl bench {name}")
    suite = make(
        commands,
        "suite",
        bench_suite,
        "train on each task of a suite, over seeds, and report interquartile means",
        example="robot-rl bench suite --suite ours --out runs/ours",
    )
    _add_suite_arguments(suite)
    perturbed = make(
        commands,
        "perturbed",
        bench_perturbed,
        "evaluate runs in other worlds than their own, each axis alone at several strengths",
        example="robot-rl bench perturbed runs/one runs/two --out runs/perturbed",
    )
    _add_perturbed_arguments(perturbed)
    add_commands(commands, make, BENCH_COMMAND_GROUP)


def _timing(name: str) -> Callable[[argparse.Namespace], Reply]:
    def run(arguments: argparse.Namespace) -> Reply:
        del arguments  # it has none
        one_thread()
        answer = run_benchmark(name)
        return Reply(answer, flat_lines(answer))

    return run


def _add_suite_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--suite", required=True, metavar="NAME", help=f"one of: {', '.join(suite_names())}; or a YAML file"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="directory of the runs and the report")
    parser.add_argument("--seeds", type=natural, nargs="+", default=[0, 1, 2], metavar="N", help="default: 0 1 2")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="runs at a time (default: 1)")
    parser.add_argument("--tasks", nargs="+", default=[], metavar="TASK", help="only these of the suite")
    parser.add_argument(
        "--tuning", action="store_true", help=f"the tuning tasks instead, with seeds from {TUNING_SEEDS_FROM} on"
    )
    parser.add_argument("--env-python", default="", metavar="FILE", help="interpreter in which the environments live")
    parser.add_argument("--report", action="store_true", help="play nothing; report what is finished")


def _add_perturbed_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run directories of one task")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="directory of results and report")
    parser.add_argument("--episodes", type=positive, default=50, metavar="N", help="in each world (default: 50)")
    parser.add_argument("--seed", type=natural, metavar="N", help="which resets (default: as the first run)")
    names = ", ".join(axis.name for axis in AXES)
    parser.add_argument("--axes", nargs="+", default=[], metavar="AXIS", help=f"only these of: {names}")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where to compute (default: as each run did)")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="evaluations at a time (default: 1)")
    parser.add_argument("--report", action="store_true", help="play nothing; report what is finished")


def bench_perturbed(arguments: argparse.Namespace) -> Reply:
    """Evaluate what has no result yet, and report.

    Raises:
        UnknownNameError: if there is no such axis.
        ConfigError: if the runs do not belong together, or the directory holds other results.
        InterruptedRunError: after Ctrl-C; the same command goes on.
    """
    axes = chosen_axes(arguments.axes)
    from robot_rl.bench.jobs import play_shown
    from robot_rl.bench.perturbed.grid import make_grid  # here, as `--help` should not wait for torch
    from robot_rl.bench.perturbed.report import success_text, summary, write_page
    from robot_rl.system.atomic_file import to_json, write_atomically

    out = arguments.out
    grid = make_grid(arguments.runs, axes, out, arguments.episodes, arguments.seed, arguments.device)
    failures = play_shown(grid.evaluations, 0 if arguments.report else arguments.jobs, "perturbed", "evaluations")
    out.mkdir(parents=True, exist_ok=True)
    answer = summary(grid, failures)
    answer["report"] = str(write_page(grid, answer, shlex.join(["robot-rl", *sys.argv[1:]]), out))
    write_atomically(out / "results.json", to_json(answer, indent=2) + "\n")
    lines = [f"{answer['evaluations']} of {answer['wanted']} evaluations have a result: {answer['report']}"]
    for axis in grid.axes:
        for label, points in answer["axes"][axis.name].items():
            shown = (f"{point['strength']:g}: {success_text(point)}" for point in points)
            lines.append(f"{label}, {axis.title}: {'; '.join(shown)}")
    lines += [f"left out: {name}: {reason}" for name, reason in grid.missing.items()]
    lines += [f"failed: {text}" for text in answer["failed"]]
    return Reply(answer, lines, 1 if failures else 0)


def bench_suite(arguments: argparse.Namespace) -> Reply:
    """Play the runs that have no result yet, and report.

    Raises:
        UnknownNameError: if there is no such suite or task.
        ConfigError: if a setting is wrong, or the seeds are for the other purpose.
        InterruptedRunError: after Ctrl-C; the same command goes on.
    """
    from robot_rl.bench.jobs import play_shown
    from robot_rl.bench.suite.definition import read_suite  # here, as `--help` should not wait for torch
    from robot_rl.bench.suite.report import SuiteResult, write_page
    from robot_rl.bench.suite.runs import SuiteRun, run_path
    from robot_rl.run.directory.run_directory import RunDirectory
    from robot_rl.system.atomic_file import to_json, write_atomically

    suite = read_suite(arguments.suite)
    tasks = suite.tuning_tasks if arguments.tuning else suite.tasks
    for task in arguments.tasks:
        if task not in tasks:
            raise UnknownNameError("task of this suite", task, tasks)
    for task in (chosen := arguments.tasks or tasks):
        check_task(task)
    check_once("--tasks", arguments.tasks)
    check_once("--seeds", arguments.seeds)
    _check_seeds(arguments.seeds, arguments.tuning)
    out = arguments.out
    if RunDirectory.holds_run(out):
        raise ConfigError(f"{out} is a run itself; choose another --out, for the runs of the suite")
    runs = [
        SuiteRun(task, seed, suite.config(task, seed, arguments.env_python), run_path(out, task, seed))
        for seed in arguments.seeds
        for task in chosen
    ]
    failures = play_shown(runs, 0 if arguments.report else arguments.jobs, f"suite {suite.name}", "runs")
    result = SuiteResult.of(suite, runs)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["robot-rl", *sys.argv[1:]])
    report = write_page(result, failures, command, out)
    answer = {
        **result.summary(),
        "wanted": len(runs),
        "failed": [str(failure) for failure in failures],
        "report": str(report),
    }
    write_atomically(out / "results.json", to_json(answer, indent=2) + "\n")
    lines = [f"{answer['runs']} of {len(runs)} runs have a result: {report}"]
    if answer["iqm"] is not None:
        low, high = answer["iqm_ci95"]
        lines.append(f"interquartile mean {answer['iqm']:.3f} (95 % interval {low:.3f} to {high:.3f})")
        lines += [f"{task}: {row['mean']:.2f}" for task, row in answer["tasks"].items()]
    lines += result.remarks()
    lines += [f"failed: {text}" for text in answer["failed"]]
    return Reply(answer, lines, 1 if failures else 0)


def _check_seeds(seeds: list[int], tuning: bool) -> None:
    wrong = [seed for seed in seeds if (seed >= TUNING_SEEDS_FROM) != tuning]
    if wrong:
        raise ConfigError(
            f"seeds {wrong} with{'' if tuning else 'out'} --tuning: settings are chosen on tuning tasks with seeds "
            f"from {TUNING_SEEDS_FROM} on, results are those of seeds below"
        )
