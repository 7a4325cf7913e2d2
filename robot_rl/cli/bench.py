"""`robot-rl bench`: time a part against what this machine can do, or play a suite of tasks over seeds."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.bench.suite.names import TUNING_SEEDS_FROM, suite_names
from robot_rl.cli.command import MakeParser, Reply, flat_lines, natural, positive
from robot_rl.env.registry import benchmark_names, check_task, run_benchmark
from robot_rl.errors import ConfigError, InterruptedRunError, UnknownNameError
from robot_rl.system.process import one_thread, stop_on_signal

if TYPE_CHECKING:
    from robot_rl.bench.suite.runs import FailedRun, SuiteRun


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


def bench_suite(arguments: argparse.Namespace) -> Reply:
    """Play the runs that have no result yet, and report.

    Raises:
        UnknownNameError: if there is no such suite or task.
        ConfigError: if a setting is wrong, or the seeds are for the other purpose.
        InterruptedRunError: after Ctrl-C; the same command goes on.
    """
    from robot_rl.bench.suite.definition import read_suite  # here, as `--help` should not wait for torch
    from robot_rl.bench.suite.report import SuiteResult, write_page
    from robot_rl.bench.suite.runs import SuiteRun, run_path
    from robot_rl.system.atomic_file import to_json, write_atomically

    suite = read_suite(arguments.suite)
    tasks = suite.tuning_tasks if arguments.tuning else suite.tasks
    for task in arguments.tasks:
        if task not in tasks:
            raise UnknownNameError("task of this suite", task, tasks)
    for task in (chosen := arguments.tasks or tasks):
        check_task(task)
    _check_seeds(arguments.seeds, arguments.tuning)
    out = arguments.out
    runs = [
        SuiteRun(task, seed, suite.config(task, seed, arguments.env_python), run_path(out, task, seed))
        for seed in arguments.seeds
        for task in chosen
    ]
    failures = [] if arguments.report else _play(runs, arguments.jobs, suite.name)
    result = SuiteResult.of(suite, runs)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["robot-rl", *sys.argv[1:]])
    report = write_page(result, failures, command, out)
    answer = {
        **result.summary(),
        "wanted": len(runs),
        "failed": [f"{failure.run.task}, seed {failure.run.seed}: {failure.reason}" for failure in failures],
        "report": str(report),
    }
    write_atomically(out / "results.json", to_json(answer, indent=2) + "\n")
    lines = [f"{answer['runs']} of {len(runs)} runs have a result: {report}"]
    if answer["iqm"] is not None:
        low, high = answer["iqm_ci95"]
        lines.append(f"interquartile mean {answer['iqm']:.3f} (95 % interval {low:.3f} to {high:.3f})")
        lines += [f"{task}: {row['mean']:.2f}" for task, row in answer["tasks"].items()]
    lines += [f"failed: {text}" for text in answer["failed"]]
    return Reply(answer, lines, 1 if failures else 0)


def _play(runs: list[SuiteRun], jobs: int, name: str) -> list[FailedRun]:
    from robot_rl.bench.suite.runs import play
    from robot_rl.system.progress import Progress

    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        progress.log("stopping: the running runs end their episode and save")

    with Progress(len(runs), f"suite {name}", unit="runs") as progress, stop_on_signal(stop):
        failures = play(
            runs,
            jobs,
            on_change=lambda finished, running: progress.update(finished, running=float(running)),
            stop=lambda: stopped,
        )
    if stopped:  # by a signal
        raise InterruptedRunError("stopped and saved; the same command goes on")
    return failures


def _check_seeds(seeds: list[int], tuning: bool) -> None:
    wrong = [seed for seed in seeds if (seed >= TUNING_SEEDS_FROM) != tuning]
    if wrong:
        raise ConfigError(
            f"seeds {wrong} with{'' if tuning else 'out'} --tuning: settings are chosen on tuning tasks with seeds "
            f"from {TUNING_SEEDS_FROM} on, results are those of seeds below"
        )
