"""The command line of `robot-rl`; `robot-rl --help` lists the commands. Wiring only.

Answers go to standard output (as JSON with `--json`), progress and errors to standard error. Exit codes: 0 done,
1 an error or a figure below the wanted one, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl import __version__
from robot_rl.cli.classifier import add_classifier_commands
from robot_rl.cli.command import (
    Reply,
    add_commands,
    add_group,
    add_parser,
    add_renamed,
    flat_lines,
    natural,
    positive,
    share,
)
from robot_rl.cli.data import add_data_commands
from robot_rl.cli.label import add_label_commands
from robot_rl.cli.logs import show_logs
from robot_rl.cli.operator import add_devices_command, add_operator_flags, operator_options
from robot_rl.cli.summary_text import summary_lines
from robot_rl.config.describe import list_keys
from robot_rl.config.load import load_config, load_run_config
from robot_rl.env.registry import benchmark_names, check_task
from robot_rl.errors import InterruptedRunError, RobotRLError
from robot_rl.run.directory.calibrations import Calibrations, read_record, whole_path
from robot_rl.system.atomic_file import to_json
from robot_rl.system.process import one_thread


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `robot-rl`; returns the exit code."""
    show_logs()
    arguments, unknown = _parser().parse_known_args(argv)
    if unknown:
        arguments.parser.error(f"unknown argument {' '.join(unknown)}; the valid ones are above")
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except InterruptedRunError as error:
        print(f"robot-rl: {error}", file=sys.stderr)
        return 130
    except RobotRLError as error:
        print(f"robot-rl: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("robot-rl: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the answer, e.g. `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="robot-rl", description="Teach a robot arm a manipulation skill.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"robot-rl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    _command(commands, "tasks", _tasks, "list the tasks that are installed")

    add_devices_command(_reply_command, commands)

    demo = _command(commands, "demo", _demo, "record demonstrations, by a person or by the task's scripted operator")
    demo.add_argument("task", metavar="TASK", help="name of the task; `robot-rl tasks` lists them")
    demo.add_argument("--episodes", type=positive, default=20, metavar="N", help="how many (default: 20)")
    demo.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="seed of the resets and of the operator (default: 0)"
    )
    demo.add_argument(
        "--camera",
        action="append",
        default=[],
        metavar="NAME",
        help="record its frames, also without --obs pixels; repeatable",
    )
    demo.add_argument("--obs", choices=("state", "pixels"), default="state", help="what is recorded (default: state)")
    _calibration_flag(demo)
    demo.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new episode store")
    add_operator_flags(demo)

    train = _command(commands, "train", _train, "the main job: demonstrate, learn with interventions, evaluate")
    train.add_argument("task", nargs="?", metavar="TASK", help="name of the task (default: peg_insert)")
    train.add_argument("--obs", choices=("state", "pixels"), help="what the policy learns from (default: state)")
    train.add_argument(
        "--realtime",
        action="store_true",
        help="simulate at the pace of the wall clock; the learner gets a process of its own",
    )
    train.add_argument("--config", type=Path, metavar="FILE", help="YAML file with settings")
    train.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override one setting; repeatable"
    )
    train.add_argument("--list-settings", action="store_true", help="print every setting with its default, and exit")
    train.add_argument("--out", type=Path, metavar="DIR", help="run directory (default: runs/<task>-seed<seed>-<time>)")
    train.add_argument("--resume", action="store_true", help="continue the run in --out; its own config is the default")
    train.add_argument("--seed", type=natural, metavar="N", help="everything random follows from it (default: 0)")
    train.add_argument("--steps", type=natural, metavar="N", help="online env steps, interventions included")
    train.add_argument("--device", choices=("cpu", "cuda"), help="where the learner computes (default: cpu)")
    train.add_argument("--episodes", type=positive, metavar="N", help="held-out evaluation episodes at the end")
    train.add_argument(
        "--min-success", type=share, default=0.0, metavar="RATE", help="exit with 1 if the success rate is below this"
    )
    _calibration_flag(train)
    train.add_argument("--demos", type=Path, metavar="STORE", help="begin with these demonstrations, all of them")
    train.add_argument(
        "--rewards", metavar="NAME", help="of `label apply`, what these are worth, instead of as recorded"
    )
    add_operator_flags(train)

    evaluate = _command(commands, "eval", _eval, "evaluate a trained policy on held-out resets")
    evaluate.add_argument("run", type=Path, metavar="RUN", help="run directory")
    evaluate.add_argument(
        "--episodes", type=positive, metavar="N", help="how many (default: as the run was configured)"
    )
    evaluate.add_argument("--seed", type=natural, metavar="N", help="which resets (default: as the run was configured)")
    evaluate.add_argument("--device", choices=("cpu", "cuda"), help="where to compute (default: as the run did)")
    evaluate.add_argument("--video", type=Path, metavar="FILE", help="film the first episodes into this MP4")
    evaluate.add_argument("--record", type=Path, metavar="DIR", help="keep the episodes in a new store here")
    evaluate.add_argument(
        "--camera", action="append", default=[], metavar="NAME", help="film from this camera; repeatable (default: all)"
    )
    evaluate.add_argument(
        "--min-success", type=share, default=0.0, metavar="RATE", help="exit with 1 if the success rate is below this"
    )

    inspect = _command(commands, "inspect", _inspect, "show what is in a run directory or an episode store")
    inspect.add_argument("path", type=Path, metavar="PATH", help="run directory, or directory of an episode store")

    data = add_group(commands, "data", "look at, check, exchange and rearrange recorded episodes")
    add_data_commands(data, _reply_command)

    text = "have a vision-language model label recorded episodes, and find out how far to trust it"
    add_label_commands(add_group(commands, "label", text), _reply_command)

    text = "a classifier that detects in frames whether the task is done: record, train, and report how far to trust it"
    add_classifier_commands(add_group(commands, "classifier", text), _reply_command)
    add_renamed(commands, "reward", "classifier")

    bench = _command(commands, "bench", _bench, "time a part against what this machine can do")
    bench.add_argument("what", metavar="WHAT", help=f"one of: {', '.join(benchmark_names())}")

    add_commands(commands, _reply_command)
    return parser


def _command(
    commands: Any, name: str, command: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser = add_parser(commands, name, text)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(command=command, parser=parser)
    return parser


def _reply_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Reply], text: str
) -> argparse.ArgumentParser:
    def command(arguments: argparse.Namespace) -> int:
        reply = run(arguments)
        _answer(arguments, reply.answer, reply.lines)
        return reply.code

    return _command(commands, name, command, text)


def _calibration_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--calibration",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a result of `robot-rl calibrate` that holds (of camera NAME); recorded, others are refused; repeatable",
    )


# --------------------------------------------------------------------- commands


def _tasks(arguments: argparse.Namespace) -> int:
    from robot_rl.env.registry import environment_names, make_environment, task_names

    rows = []
    for name in (*task_names(), *environment_names()):
        env = make_environment(name)
        spec = env.environment_spec
        env.close()
        rows.append(
            {"name": name, "instruction": spec.instruction, "max_steps": spec.max_steps, "cameras": spec.cameras}
        )
    _answer(arguments, rows, [f"{row['name']:<12} {row['instruction']}" for row in rows])
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    check_task(arguments.task)
    operator, shared = operator_options(arguments), {"episodes": arguments.episodes, "seed": arguments.seed}
    from robot_rl.run.deployment import workcell_options

    observed = workcell_options(load_config(None, [f"task={arguments.task}", f"observations={arguments.obs}"]))
    observed = replace(observed, cameras=tuple(dict.fromkeys((*observed.cameras, *arguments.camera))))
    calibrations = Calibrations([read_record(entry) for entry in arguments.calibration], cameras=observed.cameras)
    shared["calibrations"] = calibrations
    if operator is None:
        from robot_rl.run.demonstrate import demonstrate

        answer = demonstrate(arguments.task, arguments.out, observed=observed, **shared)
    else:
        from robot_rl.hil.demo_session import record_human_demonstrations

        answer = record_human_demonstrations(
            arguments.task, arguments.out, observed=observed, operator=operator, **shared
        )
    _answer(arguments, answer, flat_lines(answer))
    return 0


def _train(arguments: argparse.Namespace) -> int:
    if arguments.list_settings:
        keys = list_keys()
        _answer(arguments, [key.row() for key in keys], [key.text() for key in keys])
        return 0
    from robot_rl.run.directory.run_directory import RunDirectory, default_run_path

    flags = {
        "task": "task",
        "obs": "observations",
        "seed": "seed",
        "steps": "env_steps",
        "device": "device",
        "episodes": "evaluation.episodes",
    }
    given = {key: getattr(arguments, flag) for flag, key in flags.items()}
    overrides = [*arguments.set, *(f"{key}={value}" for key, value in given.items() if value is not None)]
    if arguments.calibration:
        overrides.append(f"calibrations={to_json([whole_path(entry) for entry in arguments.calibration])}")
    operator = operator_options(arguments)
    if arguments.realtime or operator is not None:  # nobody can lead an arm faster than real time
        overrides += ["realtime=true", "processes=2"]
    if arguments.rewards is not None and arguments.demos is None:
        arguments.parser.error("--rewards needs --demos STORE, the store whose rewards are meant")
    if arguments.demos is not None and not arguments.resume:
        from robot_rl.data.store.operator_labels import rewarded_episodes
        from robot_rl.data.store.store import EpisodeStore

        with EpisodeStore.open(arguments.demos) as demos:
            overrides.append(f"demonstrations={len(rewarded_episodes(demos, arguments.rewards))}")
    if arguments.resume:
        if arguments.out is None:
            arguments.parser.error("--resume needs --out DIR, the directory of the run to continue")
        RunDirectory.read_config(arguments.out)  # its error names what is wrong, if there is no run
        config = load_run_config(arguments.config or arguments.out / "config.yaml", overrides)
    else:
        config = load_config(arguments.config, overrides)
    path = arguments.out or default_run_path(config.task, config.seed)
    check_task(config.task)
    if not arguments.resume:
        RunDirectory.check_free(path)
    one_thread()  # and whatever takes seconds to import, after what a user may have got wrong
    from robot_rl.run.train import train

    deployment = None
    if operator is not None:
        from robot_rl.hil.local_operator import local_deployment

        deployment = local_deployment(operator, path, config.env_steps)
    summary = train(
        config, path, resume=arguments.resume, demos=arguments.demos, rewards=arguments.rewards, deployment=deployment
    )
    _answer(arguments, summary, [*summary_lines(summary), f"run directory: {path}"])
    return _exit_code(summary["success_rate"], arguments.min_success)


def _eval(arguments: argparse.Namespace) -> int:
    if arguments.camera and arguments.video is None:
        arguments.parser.error("--camera needs --video FILE, the film to make from it")
    one_thread()
    from robot_rl.run.evaluate_run import evaluate_run

    answer = evaluate_run(
        arguments.run,
        episodes=arguments.episodes,
        seed=arguments.seed,
        device=arguments.device,
        video=arguments.video,
        cameras=tuple(arguments.camera),
        record=arguments.record,
    )
    _answer(arguments, answer, summary_lines(answer))
    if arguments.video is not None and answer["video"] is None:
        return 1  # there is no film; evaluate_run has logged why
    return _exit_code(answer["success_rate"], arguments.min_success)


def _inspect(arguments: argparse.Namespace) -> int:
    from robot_rl.cli.inspect import inspect

    answer = inspect(arguments.path)
    _answer(arguments, answer, flat_lines(answer))
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    one_thread()
    from robot_rl.env.registry import run_benchmark

    answer = run_benchmark(arguments.what)
    _answer(arguments, answer, flat_lines(answer))
    return 0


# ---------------------------------------------------------------------- helpers


def _answer(arguments: argparse.Namespace, answer: Any, lines: Sequence[str]) -> None:
    """Print the answer, for a program or for a person."""
    text = to_json(answer) if arguments.json else "\n".join(lines)
    print(text, end="\n" if text else "")


def _exit_code(rate: float, wanted: float) -> int:
    """Return the exit code for a success rate."""
    if rate >= wanted:
        return 0
    print(f"robot-rl: success {rate:.3f} is below --min-success {wanted:g}", file=sys.stderr)
    return 1
