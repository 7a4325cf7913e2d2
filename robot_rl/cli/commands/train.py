"""`robot-rl train`: the main job, begun anew, from parts of another run, as a fork, or resumed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from robot_rl.cli.commands.base import base_settings
from robot_rl.cli.commands.evaluate import exit_code
from robot_rl.cli.commands.lineage import (
    OneStore,
    add_lineage_flags,
    check_lineage_flags,
    fork,
    fork_source,
    initial_parts,
)
from robot_rl.cli.parts.command import (
    MakeParser,
    Reply,
    add_calibration_flag,
    add_call_flag,
    add_settings_flags,
    demonstrations_of,
    given_settings,
    natural,
    positive,
    share,
)
from robot_rl.cli.parts.operator_flags import add_operator_flags, add_robot_flag, attending_operator, check_robot_named
from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.env.registry import check_task, is_environment
from robot_rl.errors import ConfigError
from robot_rl.system.process import one_thread

if TYPE_CHECKING:  # torch takes seconds to import
    from robot_rl.config.components import TrainConfig
    from robot_rl.hil.operator_setup import OperatorOptions
    from robot_rl.run.deployment import Deployment
    from robot_rl.run.lineage.initial_parts import InitialParts
    from robot_rl.run.lineage.source_run import SourceRun

_SETTING_OF_FLAG = {
    "task": "task",
    "obs": "observations",
    "seed": "seed",
    "steps": "env_steps",
    "device": "device",
    "episodes": "evaluation.episodes",
}


def add_train_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl train`."""
    train = make(
        commands,
        "train",
        _train,
        "the main job: demonstrate, learn with interventions, evaluate",
        example="robot-rl train peg_insert --seed 1 --out runs/one",
        page="README.md",
    )
    train.add_argument("task", nargs="?", metavar="TASK", help="name of the task (default: peg_insert)")
    train.add_argument("--obs", choices=("state", "pixels"), help="what the policy learns from (default: state)")
    train.add_argument(
        "--realtime",
        action="store_true",
        help="simulate at the pace of the wall clock; the learner gets a process of its own",
    )
    add_settings_flags(train)
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
    add_calibration_flag(train)
    train.add_argument(
        "--demos", type=Path, action=OneStore, metavar="STORE", help="begin with these demonstrations, all of them"
    )
    train.add_argument(
        "--base",
        metavar="KIND[:PATH]",
        help="correct this base policy, e.g. chunk, run:runs/one, server:ws://gpu:8000; see docs/base_policies.md",
    )
    train.add_argument(
        "--rewards", metavar="NAME", help="of `label apply`, what these are worth, instead of as recorded"
    )
    add_call_flag(train)
    train.add_argument(
        "--unattended",
        action="store_true",
        help="nobody is there: nobody takes over, and where only a person could help, the arm holds, and the run ends",
    )
    train.add_argument(
        "--patience",
        type=positive,
        metavar="MINUTES",
        help="with --unattended: of robot time without a success, after which a person is needed (default: never)",
    )
    add_robot_flag(train)
    add_lineage_flags(train)
    add_operator_flags(train)


class _Beginning(NamedTuple):
    """With which settings a run begins, and what it takes over.

    Attributes:
        config: The settings.
        initial: Parts of another run; None: it takes over nothing.
        source: The run that it forks; None: it is no fork.
    """

    config: TrainConfig
    initial: InitialParts | None = None
    source: SourceRun | None = None


def _train(arguments: argparse.Namespace) -> Reply:
    if arguments.list_settings:
        from robot_rl.config.describe import list_keys

        keys = list_keys()
        return Reply([key.row() for key in keys], [key.text() for key in keys])
    from robot_rl.run.directory.run_directory import RunDirectory, default_run_path

    operator = attending_operator(arguments)
    if arguments.patience is not None and not arguments.unattended:
        arguments.parser.error("--patience needs --unattended")
    check_lineage_flags(arguments)
    if arguments.rewards is not None and arguments.demos is None:
        arguments.parser.error("--rewards needs --demos STORE, the store whose rewards are meant")
    beginning = _beginning(arguments, _overrides(arguments, operator))
    config, initial, source = beginning
    _check_calls(arguments, config, person=operator is not None)
    path = arguments.out or default_run_path(config.task, config.seed)
    deployment = None
    if arguments.robot is None:
        check_task(config.task)
    else:
        operator, deployment = _on_robot(arguments, beginning, operator)
    if not arguments.resume:
        RunDirectory.check_free(path)
    one_thread()  # and whatever takes seconds to import, after what a user may have got wrong
    from robot_rl.run.deployment import Deployment
    from robot_rl.run.train import train
    from robot_rl.unattended.training import train_unattended

    if operator is not None:
        from robot_rl.hil.local_operator import local_deployment

        deployment = local_deployment(operator, path, config.env_steps, deployment)
    if arguments.call:
        deployment = replace(deployment or Deployment(), call=arguments.call)
    if arguments.unattended:
        deployment = deployment or Deployment()
        command = deployment.resume_command.replace("--resume", "--unattended --resume")
        patience = math.inf if arguments.patience is None else 60.0 * arguments.patience
        there = replace(deployment, resume_command=command)
        run: Callable[..., dict[str, Any]] = partial(train_unattended, deployment=there, patience=patience)
    else:
        run = partial(train, deployment=deployment)
    if source is not None:
        fork(source, config, path)
    summary = run(
        config,
        path,
        resume=arguments.resume or source is not None,
        demos=arguments.demos,
        rewards=arguments.rewards,
        initial=initial,
    )
    code = exit_code(summary["success_rate"], arguments.min_success)
    return Reply(summary, [*summary_lines(summary), f"run directory: {path}"], code)


def _overrides(arguments: argparse.Namespace, operator: OperatorOptions | None) -> list[str]:
    """Return the settings that were given, and those that follow from the other flags."""
    overrides = [*base_settings(arguments.base), *given_settings(arguments, _SETTING_OF_FLAG)]
    if arguments.calibration:
        from robot_rl.run.directory.calibrations import whole_path
        from robot_rl.system.atomic_file import to_json

        overrides.append(f"calibrations={to_json([whole_path(entry) for entry in arguments.calibration])}")
    if arguments.realtime or operator is not None or arguments.robot is not None:  # nobody leads faster than real time
        overrides += ["realtime=true", "processes=2"]
    if arguments.unattended:
        overrides.append("intervention.enabled=false")
    if arguments.demos is not None:
        overrides.append(demonstrations_of(arguments.demos, arguments.rewards))
    return overrides


def _beginning(arguments: argparse.Namespace, overrides: list[str]) -> _Beginning:
    """Read the run that is resumed, forked or begun from, if there is one, and the settings."""
    from robot_rl.config.load import load_config, load_run_config
    from robot_rl.run.directory.run_directory import RunDirectory

    if arguments.resume:
        if arguments.out is None:
            arguments.parser.error("--resume needs --out DIR, the directory of the run to continue")
        RunDirectory.read_config(arguments.out)  # its error names what is wrong, if there is no run
        if arguments.robot is None:
            check_robot_named(arguments.out)
        return _Beginning(load_run_config(arguments.out / "config.yaml", overrides, arguments.config))
    if arguments.fork is not None:
        source = fork_source(arguments)
        return _Beginning(load_run_config(source.path / "config.yaml", overrides, arguments.config), source=source)
    initial = initial_parts(arguments, overrides)
    return _Beginning(load_config(arguments.config, overrides), initial)


def _check_calls(arguments: argparse.Namespace, config: TrainConfig, *, person: bool) -> None:
    """Check that there is a reason to run the command of `--call`, and that it is there, and that somebody may come.

    That is before anything of a run is made.
    """
    if arguments.unattended and config.intervention.call.rule != "none":
        raise ConfigError("with --unattended nobody takes over; leave intervention.call.rule out")
    if arguments.call:
        from robot_rl.calling.caller import command_words

        if config.intervention.call.rule == "none" and not arguments.unattended:
            raise ConfigError(
                "--call needs a rule that predicts failure, --set intervention.call.rule=doubt, or time, or value; or "
                "--unattended"
            )
        command_words(arguments.call)
    if config.intervention.call.only and (person or arguments.robot is not None or is_environment(config.task)):
        from robot_rl.calling.advisor import no_script

        raise no_script(config.task)


def _on_robot(
    arguments: argparse.Namespace, beginning: _Beginning, operator: OperatorOptions | None
) -> tuple[OperatorOptions | None, Deployment]:
    """Return who assists on the arm of `--robot`, and the arm; refuse a training that nobody judges or demonstrates."""
    from robot_rl.cell.robot_place import judged_place, no_demonstrations

    config = beginning.config
    attended = not arguments.unattended
    robot, operator, deployment = judged_place(
        arguments.robot, config.task, config.reward.kind, operator, attended=attended
    )
    recorded = arguments.demos is not None or arguments.resume or beginning.source or beginning.initial
    if config.demonstrations and not recorded and robot.cell.judge == "person":
        raise no_demonstrations(config.task, arguments.robot)
    return operator, deployment
