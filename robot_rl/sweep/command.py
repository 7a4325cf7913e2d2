"""`robot-rl sweep`: choose settings on tuning seeds, and show on other seeds what the choice is worth."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from robot_rl.bench.suite.names import TUNING_SEEDS_FROM, check_once
from robot_rl.cli.parts.command import MakeParser, Reply, in_words, natural, positive
from robot_rl.env.registry import check_task
from robot_rl.errors import ConfigError


def add_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl sweep`."""
    parser = make(
        commands,
        "sweep",
        _sweep,
        "choose settings of a training on tuning seeds, and test the best on others",
        example="robot-rl sweep reach --space space.yaml --budget 27 --steps 3000 --test-seeds 0 1 2 --out runs/sweep",
        page="docs/sweep.md",
    )
    parser.add_argument("task", metavar="TASK", help="name of the task; `robot-rl tasks` lists them")
    parser.add_argument("--space", type=Path, required=True, metavar="FILE", help="YAML file: which settings vary")
    parser.add_argument("--budget", type=positive, required=True, metavar="N", help="trials in all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the sweep")
    parser.add_argument("--steps", type=positive, metavar="N", help="env steps of a whole trial (default: the task's)")
    parser.add_argument(
        "--tuning-seeds", type=natural, nargs="+", default=[TUNING_SEEDS_FROM], metavar="N",
        help=f"runs of each trial (default: {TUNING_SEEDS_FROM})",
    )  # fmt: skip
    parser.add_argument(
        "--test-seeds", type=natural, nargs="+", default=[], metavar="N",
        help="afterwards, train with the best settings and with the defaults on these, and compare",
    )  # fmt: skip
    parser.add_argument("--eta", type=positive, default=3, metavar="N", help="one of N trials goes on (default: 3)")
    parser.add_argument("--rungs", type=positive, default=3, metavar="N", help="how often; 1: none is stopped early")
    parser.add_argument("--seed", type=natural, default=0, metavar="N", help="of the suggestions (default: 0)")
    parser.add_argument("--retry-failed", action="store_true", help="play trials again that failed in an earlier call")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="runs at a time (default: 1)")


def _sweep(arguments: argparse.Namespace) -> Reply:
    parser = arguments.parser
    if arguments.eta < 2:
        parser.error("--eta must be at least 2; for trials that all run to their end take --rungs 1")
    _check_seeds(arguments.tuning_seeds, arguments.test_seeds)
    check_task(arguments.task)
    from robot_rl.sweep.sampler import STARTUP, check_installed
    from robot_rl.sweep.space import read_space

    check_installed()
    space = read_space(arguments.space, arguments.task)
    from robot_rl.bench.jobs import play_shown
    from robot_rl.config.load import load_config
    from robot_rl.sweep.report import summary, test_runs, tested, write_report
    from robot_rl.sweep.schedule import Schedule
    from robot_rl.sweep.sweep import Sweep

    # Without halving a round is as long as the random start; it must not depend on --jobs, which may change.
    steps = arguments.steps or load_config(None, [*space.settings, f"task={arguments.task}"]).env_steps
    least = arguments.eta ** (arguments.rungs - 1)
    if steps < least:
        raise ConfigError(f"{steps} env steps are too few for {arguments.rungs} rungs; valid: at least {least}")
    size = least if arguments.rungs > 1 else STARTUP
    schedule = Schedule(arguments.budget, size, steps, arguments.eta, arguments.rungs)
    with Sweep(arguments.out, arguments.task, space, schedule, arguments.tuning_seeds, arguments.seed) as sweep:
        play = partial(play_shown, at_a_time=arguments.jobs, name=f"sweep {arguments.task}", unit="runs")
        if arguments.retry_failed:
            sweep.retry_failed(play)
        sweep.run(play)
        answer = summary(sweep)
        failed = len(answer["failed"])
        if arguments.test_seeds:
            runs = test_runs(sweep, arguments.test_seeds)
            failures = play_shown([run for own in runs.values() for run in own], arguments.jobs, "test", "runs")
            failed += len(failures)
            answer["failed"] += [str(failure) for failure in failures]
            answer["test"] = tested(sweep, runs)
        answer["report"] = str(write_report(sweep, answer, shlex.join(["robot-rl", *sys.argv[1:]])))
    return Reply(answer, _lines(answer), 1 if failed or answer["best"] is None else 0)


def _lines(answer: dict[str, Any]) -> list[str]:
    lines = [f"{len(answer['trials'])} trials: {answer['report']}"]
    if (best := answer["best"]) is not None:
        settings = in_words(best["settings"])
        lines.append(f"best: trial {best['trial']}, score {best['score']:.3f} on tuning seeds: {settings}")
    lines += [f"importance of {key}: {share:.2f}" for key, share in answer["importance"].items()]
    for name, row in answer.get("test", {}).items():
        if row["iqm"] is not None:
            low, high = row["iqm_ci95"]
            lines.append(
                f"{name} on test seeds: interquartile mean {row['iqm']:.3f} (95 % interval {low:.3f} to {high:.3f})"
            )
    return lines + [f"failed: {text}" for text in answer["failed"]]


def _check_seeds(tuning: Sequence[int], test: Sequence[int]) -> None:
    """Refuse seeds that would be used for both.

    Raises:
        ConfigError: naming them.
    """
    wrong = [seed for seed in tuning if seed < TUNING_SEEDS_FROM] + [seed for seed in test if seed >= TUNING_SEEDS_FROM]
    if wrong:
        raise ConfigError(
            f"seeds {wrong}: settings are chosen on seeds from {TUNING_SEEDS_FROM} on (--tuning-seeds), and tested on "
            "seeds below (--test-seeds)"
        )
    check_once("--tuning-seeds", tuning)
    check_once("--test-seeds", test)
