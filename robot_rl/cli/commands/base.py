"""`robot-rl base`: train a base policy by itself, evaluate or serve one; and `--base` of `robot-rl train`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.commands.evaluate import exit_code
from robot_rl.cli.parts.command import MakeParser, Reply, add_group, add_set_flag, flat_lines, natural, positive, share
from robot_rl.cli.parts.operator_flags import add_operator_flags, add_robot_flag, judged_deployment, judging_operator
from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.env.registry import check_task
from robot_rl.system.process import one_thread

if TYPE_CHECKING:  # pydantic and its checks take a fifth of a second to set up
    from robot_rl.config.components import TrainConfig
    from robot_rl.run.deployment import Deployment

_PAGE = "docs/base_policies.md"


def base_settings(base: str | None) -> list[str]:
    """Return the settings that `--base KIND[:PATH]` stands for."""
    if base is None:
        return []
    kind, _, path = base.partition(":")
    return [f"base.{key}={json.dumps(value)}" for key, value in (("kind", kind), ("path", path)) if value]


def add_base_commands(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl base`."""
    text = "a base policy, which a training corrects: train one from demonstrations, evaluate or serve one"
    group = add_group(commands, "base", text, page=_PAGE)
    train = make(
        group,
        "train",
        _train,
        "train a base from recorded demonstrations",
        example="robot-rl base train peg_insert --demos demos --out base.pt",
        page=_PAGE,
    )
    _shared(train)
    train.add_argument("--kind", default="chunk", metavar="KIND", help="of the base: chunk or clone (default: chunk)")
    train.add_argument("--demos", type=Path, required=True, metavar="STORE", help="episodes: a store, or a run")
    train.add_argument(
        "--learn-from",
        choices=("demonstrations", "corrections", "successes"),
        default="demonstrations",
        help="demonstrations; with corrections also the take-overs of a run; or all episodes that succeeded, whoever "
        "acted, so that a plain policy comes of a corrected one (default: demonstrations)",
    )
    train.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file of the base, e.g. base.pt")
    train.add_argument("--seed", type=natural, default=0, metavar="N", help="of the training (default: 0)")

    evaluate = make(
        group,
        "eval",
        _evaluate,
        "evaluate a base alone on held-out resets",
        example="robot-rl base eval peg_insert --base chunk:base.pt --episodes 100",
        page=_PAGE,
    )
    _shared(evaluate)
    evaluate.add_argument("--base", required=True, metavar="KIND[:PATH]", help="the base, e.g. chunk:base.pt")
    evaluate.add_argument("--episodes", type=positive, metavar="N", help="how many (default: 100)")
    evaluate.add_argument("--seed", type=natural, metavar="N", help="which resets (default: those of a training)")
    evaluate.add_argument("--video", type=Path, metavar="FILE", help="film the first episodes into this MP4")
    evaluate.add_argument("--record", type=Path, metavar="DIR", help="keep the episodes in a new store here")
    evaluate.add_argument(
        "--min-success", type=share, default=0.0, metavar="RATE", help="exit with 1 if the success rate is below this"
    )
    add_operator_flags(evaluate)

    serve = make(
        group,
        "serve",
        _serve,
        "serve a base to runs on other machines: --base server:ws://HOST:PORT",
        example="robot-rl base serve peg_insert --base chunk:base.pt --host 0.0.0.0",
        page=_PAGE,
    )
    _shared(serve)
    serve.add_argument("--base", required=True, metavar="KIND[:PATH]", help="the base, e.g. chunk:base.pt")
    serve.add_argument(
        "--host", default="127.0.0.1", help="where to listen; 0.0.0.0: on every network (default: this machine alone)"
    )
    serve.add_argument("--port", type=natural, default=8000, metavar="N", help="0: any that is free (default: 8000)")


def _shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="name of the task; `robot-rl tasks` lists them")
    parser.add_argument("--obs", choices=("state", "pixels"), default="state", help="what is observed (default: state)")
    add_set_flag(parser)
    add_robot_flag(parser)


def _config(arguments: argparse.Namespace, base: str, *settings: str) -> TrainConfig:
    from robot_rl.config.load import load_config

    shared = [f"task={arguments.task}", f"observations={arguments.obs}", *base_settings(base)]
    if arguments.robot is None:
        check_task(arguments.task)
    else:
        shared += ["realtime=true", "processes=2"]
    one_thread()
    return load_config(None, [*shared, *settings, *arguments.set])


def _arm(arguments: argparse.Namespace) -> Deployment | None:
    """Return the arm of `--robot`, which is only looked at; None: the task is simulated."""
    if arguments.robot is None:
        return None
    from robot_rl.cell.robot_file import read_robot_file
    from robot_rl.cell.robot_place import robot_deployment

    return robot_deployment(read_robot_file(arguments.robot.expanduser(), arguments.task))


def _judged_arm(arguments: argparse.Namespace, config: TrainConfig) -> Deployment | None:
    """Return the arm of `--robot`, and who judges there; None: the task is simulated, and judges by itself."""
    operator = judging_operator(arguments)
    if arguments.robot is None:
        return None
    return judged_deployment(arguments.robot, arguments.task, config.reward.kind, operator, arguments.record)


def _train(arguments: argparse.Namespace) -> Reply:
    config = _config(arguments, arguments.kind, f"seed={arguments.seed}")
    from robot_rl.run.base.train_base import train_base

    answer = train_base(config, arguments.demos, arguments.out, arguments.learn_from, _arm(arguments))
    return Reply(answer, flat_lines(answer))


def _evaluate(arguments: argparse.Namespace) -> Reply:
    given = {"episodes": arguments.episodes, "seed": arguments.seed}
    chosen = [f"evaluation.{key}={value}" for key, value in given.items() if value is not None]
    config = _config(arguments, arguments.base, *chosen)
    from robot_rl.run.base.evaluate_base import evaluate_base

    answer = evaluate_base(config, arguments.video, _judged_arm(arguments, config), arguments.record)
    filmed = arguments.video is None or answer["video"] is not None
    code = exit_code(answer["success_rate"], arguments.min_success) if filmed else 1
    return Reply(answer, summary_lines(answer), code)


def _serve(arguments: argparse.Namespace) -> Reply:
    config = _config(arguments, arguments.base)
    from robot_rl.run.base.serve_base import serve_base

    answer = serve_base(config, arguments.host, arguments.port, _arm(arguments))
    return Reply(answer, flat_lines(answer))
