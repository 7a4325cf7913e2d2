"""The flags of `robot-rl train` by which a run begins from another one."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.parts.command import natural
from robot_rl.cli.parts.operator_flags import check_robot_named
from robot_rl.errors import DataError

if TYPE_CHECKING:  # torch takes seconds to import
    from robot_rl.config.components import TrainConfig
    from robot_rl.run.lineage.initial_parts import InitialParts
    from robot_rl.run.lineage.source_run import SourceRun

logger = logging.getLogger(__name__)
DEFAULT = "policy,critics"


class OneStore(argparse.Action):
    """`--demos` takes one store: a second one would silently replace the first."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *rest: Any) -> None:
        """Keep the store.

        Raises:
            ArgumentError: if there is one already.
        """
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "takes one store; `robot-rl data merge` makes one of several")
        setattr(namespace, self.dest, values)


def add_lineage_flags(train: argparse.ArgumentParser) -> None:
    """Add the flags."""
    train.add_argument("--init-from", type=Path, metavar="RUN", help="begin with parts of this run, see --init")
    train.add_argument(
        "--init",
        metavar="PARTS",
        help=f"of --init-from: some of policy,critics,replay,demonstrations (default: {DEFAULT})",
    )
    train.add_argument(
        "--fork",
        type=Path,
        metavar="RUN",
        help="go on from a checkpoint of this run, in a new one, with settings changed",
    )
    train.add_argument(
        "--at", type=natural, metavar="STEP", help="of that run: the checkpoint after so many steps (default: newest)"
    )


def check_lineage_flags(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, as wrong usage."""
    error = arguments.parser.error
    if arguments.demos is not None and arguments.resume:
        error(
            f"--resume continues a run that has its demonstrations already; leave out --demos {arguments.demos}, or "
            "begin a new run with it (without --resume, in another --out)"
        )
    if arguments.demos is not None and (arguments.demos / "provenance.json").is_file():
        error(
            f"--demos {arguments.demos}: a run, not a store; --init-from {arguments.demos} --init demonstrations "
            f"begins with its demonstrations, --demos {arguments.demos / 'episodes'} with all of its episodes"
        )
    if arguments.init is not None and arguments.init_from is None:
        error("--init needs --init-from RUN, the run to begin from")
    if arguments.at is not None and arguments.init_from is None and arguments.fork is None:
        error("--at needs --init-from RUN or --fork RUN, the run to begin from")
    if arguments.resume and arguments.init_from is not None:
        error("--resume continues a run that has its beginning already; leave out --init-from")
    if arguments.fork is not None:
        for flag in ("resume", "init_from", "demos"):
            if getattr(arguments, flag):
                error(f"--fork takes all from the run that it goes on from; leave out --{flag.replace('_', '-')}")


def fork_source(arguments: argparse.Namespace) -> SourceRun:
    """Read the run that is forked.

    Raises:
        RobotRLError: if there is no such run or checkpoint.
    """
    from robot_rl.run.lineage.source_run import SourceRun

    source = SourceRun.read(arguments.fork, arguments.at)
    if arguments.robot is None:
        check_robot_named(source.path)
    return source


def fork(source: SourceRun, config: TrainConfig, path: Path) -> None:
    """Make the directory of the fork, and log where it comes from; see `fork_run`.

    Raises:
        RobotRLError: if it cannot be made, or could not go on here.
    """
    from robot_rl.run.deployment import Deployment
    from robot_rl.run.lineage.fork import fork_run
    from robot_rl.run.resume import check_goes_on_here

    check_goes_on_here(source.path, config, Deployment())  # before there is a directory
    origin = fork_run(source, config, path)
    changed = ", ".join(f"{key}: {before} -> {after}" for key, (before, after) in origin["changed"].items())
    logger.info(
        "%s forks %s after %d steps (%s); changed: %s",
        path,
        source.path,
        source.env_steps,
        origin["shared"],
        changed or "nothing",
    )


def initial_parts(arguments: argparse.Namespace, overrides: list[str]) -> InitialParts | None:
    """Read what a new run begins with, and add to its settings what follows from that; None if it is nothing.

    Raises:
        RobotRLError: if there is no such run, checkpoint or part, or the run has no demonstrations to take.
    """
    if arguments.init_from is None:
        return None
    from robot_rl.data.store.store import EpisodeStore
    from robot_rl.run.demonstrate import demonstrations_in
    from robot_rl.run.lineage.initial_parts import InitialParts, parts_of
    from robot_rl.run.lineage.source_run import SourceRun

    try:
        parts = parts_of(DEFAULT if arguments.init is None else arguments.init)
    except ValueError as error:
        arguments.parser.error(f"--init: {error}")
    initial = InitialParts.of(SourceRun.read(arguments.init_from, arguments.at), parts)
    if (store := initial.demonstrations) is not None:
        if arguments.demos is not None:
            arguments.parser.error("--demos and --init demonstrations both give demonstrations; leave one out")
        with EpisodeStore.open(store) as source:
            count = len(demonstrations_in(source))
        if not count:
            raise DataError(f"{arguments.init_from} has no demonstrations; leave them out of --init")
        overrides.append(f"demonstrations={count}")
    return initial
