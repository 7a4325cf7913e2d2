"""The flags of `robot-rl train` by which a run begins from another one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from robot_rl.cli.command import natural

if TYPE_CHECKING:  # torch takes seconds to import
    from robot_rl.run.lineage.initial_parts import InitialParts

DEFAULT = "policy,critics"


def add_lineage_flags(train: argparse.ArgumentParser) -> None:
    """Add the flags."""
    train.add_argument("--init-from", type=Path, metavar="RUN", help="begin with parts of this run, see --init")
    train.add_argument(
        "--init",
        metavar="PARTS",
        help=f"of --init-from: some of policy,critics,replay,demonstrations (default: {DEFAULT})",
    )
    train.add_argument(
        "--at", type=natural, metavar="STEP", help="of that run: the checkpoint after so many steps (default: newest)"
    )


def check_lineage_flags(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, as wrong usage."""
    error = arguments.parser.error
    if arguments.init_from is None:
        for flag in ("init", "at"):
            if getattr(arguments, flag) is not None:
                error(f"--{flag} needs --init-from RUN, the run to begin from")
        return
    if arguments.resume:
        error("--resume continues a run that has its beginning already; leave out --init-from")


def initial_parts(arguments: argparse.Namespace, overrides: list[str]) -> InitialParts | None:
    """Read what a new run begins with, and add to its settings what follows from that; None if it is nothing.

    Raises:
        RobotRLError: if there is no such run, checkpoint or part.
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
            overrides.append(f"demonstrations={len(demonstrations_in(source))}")
    return initial
