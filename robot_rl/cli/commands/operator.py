"""`robot-rl devices`, and `robot-rl operator fit`: what an operator leads with, and how one takes over."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply, add_group
from robot_rl.cli.parts.operator_flags import DEVICES
from robot_rl.env.registry import names


def add_devices_command(commands: Any, add: MakeParser) -> None:
    """Add `robot-rl devices`."""
    devices = add(
        commands,
        "devices",
        _devices,
        "list input devices, what hinders them, and show one live",
        example="robot-rl devices --test spacemouse",
        page="docs/operator.md",
    )
    devices.add_argument("--test", choices=names(DEVICES), help="show how this one is held, until Ctrl-C")
    devices.add_argument("--map", type=Path, metavar="FILE", help="test with this map instead of the default")
    devices.add_argument("--seconds", type=float, metavar="S", help="end the test after this time")


def _devices(arguments: argparse.Namespace) -> Reply:
    if arguments.test is None:
        from robot_rl.teleop.listing import list_devices

        rows = list_devices()
        return Reply(
            [row._asdict() for row in rows],
            [f"{row.kind:<11} {'ready' if row.ready else 'no':<6} {row.name:<28} {row.remark}" for row in rows],
        )
    from robot_rl.teleop.live import show_live

    seconds = float("inf") if arguments.seconds is None else arguments.seconds
    facts = show_live(arguments.test, arguments.map, until=time.monotonic() + seconds)
    return Reply(facts, [f"largest deflection at rest {facts['rest']:.3f}; the dead zone is {facts['dead_zone']:g}"])


def add_operator_commands(commands: Any, add: MakeParser) -> None:
    """Add the group `robot-rl operator`."""
    group = add_group(commands, "operator", "learn from runs how an operator takes over", page="docs/person.md")
    fit = add(
        group,
        "fit",
        _fit,
        "estimate how late, how long, how often and how usefully the operator of a run took over",
        example="robot-rl operator fit runs/mine --reference runs/ideal --out mine.yaml",
    )
    fit.add_argument("run", type=Path, metavar="RUN", help="run directory, or its episode store")
    fit.add_argument(
        "--reference", type=Path, metavar="RUN", help="run of the ideal operator on the same task; gives a profile"
    )
    fit.add_argument("--goal", metavar="KEY", help="observation of the goal in the tool's frame (default: by its name)")
    fit.add_argument("--out", type=Path, metavar="FILE", help="write the profile, for `robot-rl train --config FILE`")


def _fit(arguments: argparse.Namespace) -> Reply:
    if arguments.out is not None and arguments.reference is None:
        arguments.parser.error("--out needs --reference: a profile is relative to the ideal operator")
    from robot_rl.config.yaml_file import dump_yaml
    from robot_rl.hil.profile_fit import estimates, fit_profile, profile_settings, read_habits
    from robot_rl.system.atomic_file import write_atomically

    habits = read_habits(arguments.run, arguments.goal)
    found = {"habits": estimates(habits)}
    if arguments.reference is not None:
        found["profile"] = fit_profile(habits, read_habits(arguments.reference, arguments.goal))
    if arguments.out is not None:
        write_atomically(arguments.out, dump_yaml(profile_settings(found["profile"])))
    answer = {part: {name: vars(one) for name, one in rows.items()} for part, rows in found.items()}
    lines = [
        f"{part[:-1] if part == 'habits' else part:<8} {name:<11} {one.value:8.3f}   95 % interval {one.low:.3f} to "
        f"{one.high:.3f}, from {one.count}"
        for part, rows in found.items()
        for name, one in rows.items()
    ]
    return Reply(answer, lines + ([f"profile in {arguments.out}"] if arguments.out else []))
