"""`robot-rl bench arm`: step responses and interpolations of the arm of a robot's file, as figures and a plot."""

from __future__ import annotations

import argparse
import logging
import math
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply, positive
from robot_rl.errors import ConfigError

logger = logging.getLogger(__name__)

AXES = "xyz"
STROKES = 2
"""There and back, for each axis and interpolation, at most."""


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "arm",
        bench_arm,
        "measure how an arm follows steps of 1 cm, and which interpolation of set-points is best for it",
        example="robot-rl bench arm robot.yaml --move --out bench",
        page="docs/doctor.md",
    )
    parser.add_argument("robot", type=Path, metavar="ROBOT", help="the robot's file")
    parser.add_argument("--move", action="store_true", help="needed: the arm moves")
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="there and back (default: 5)")
    parser.add_argument(
        "--axes", nargs="+", choices=AXES, default=list(AXES), help="of the base, along which it moves (default: all)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where figures and plot are written")


def bench_arm(arguments: argparse.Namespace) -> Reply:
    """Measure, and write `arm.json` and `arm.png`.

    Raises:
        ConfigError: without `--move`, without consent, or if the robot's file is wrong.
        RobotLostError: if the arm cannot be reached, or is lost meanwhile.
    """
    along = ", ".join(arguments.axes)
    if not arguments.move:
        raise ConfigError(f"the tool steps by 1 cm along {along}; give --move if it has 3 cm of room on all sides")
    from robot_rl.arm.robot_connection import read_connection  # here, as `--help` should not wait
    from robot_rl.commission.consent import consents
    from robot_rl.commission.interpolation_strokes import (
        SLOWEST,
        WORTH,
        best_interpolation,
        interpolation_strokes,
        stroke_figures,
    )
    from robot_rl.commission.opened_robot import open_robot
    from robot_rl.commission.step_responses import BEFORE, STEP, figures, step_responses
    from robot_rl.system.atomic_file import to_json, write_atomically, writing
    from robot_rl.viz.step_response_plot import step_response_plot

    driver, out = read_connection(arguments.robot).driver, arguments.out
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with open_robot(arguments.robot, sample=0.005) as arm:
        if not consents(f"the tool steps by 1 cm along {along} and back; it needs 3 cm of room on all sides"):
            raise ConfigError("nobody consented, so nothing was measured")
        own = arm.interpolation
        show, repeats = (lambda text: logger.info("%s", text)), arguments.repeats
        responses, traces = step_responses(arm, repeats, show, arguments.axes)
        strokes = interpolation_strokes(arm, min(repeats, STROKES), show, arguments.axes)
    answer: dict[str, Any] = {
        "driver": driver,
        "robot_file": str(arguments.robot.resolve()),
        "step_mm": 1e3 * STEP,
        "steps": {axis: len(rows) for axis, rows in responses.items()},
        "axes": figures(responses),
        "interpolation": stroke_figures(strokes),
        "best_interpolation": best_interpolation(strokes),
        "own_interpolation": own,
    }
    steps: dict[str, list[tuple[Any, Any, Any]]] = {}
    for axis, rows in traces.items():
        number, steps[axis] = AXES.index(axis), []
        for trace in rows:
            way = 1e3 * (trace.target[:, number] - trace.target[0, number])
            sign = -1.0 if way[-1] < 0 else 1.0
            position = sign * 1e3 * (trace.position[:, number] - trace.target[0, number])
            steps[axis].append((trace.seconds - BEFORE, position, sign * way))
    step_response_plot(steps, out / "arm.png", f"Steps of {driver}")
    write_atomically(out / "arm.json", to_json(answer, indent=2) + "\n")
    lines = []
    for axis, values in answer["axes"].items():
        shown = ", ".join(_shown(name, one["median"]) for name, one in values.items())
        lines.append(f"{axis}: {shown}; medians of {answer['steps'][axis]} steps")
    for kind, one in answer["interpolation"].items():
        made, ripple, over = (one[name]["median"] for name in ("made", "ripple_mm", "overshoot_mm"))
        lines.append(
            f"interpolation {kind}: {made:.0%} of each action made, ripple {ripple:.2f} mm, overshoot {over:.2f} mm"
        )
    best = answer["best_interpolation"]
    lines.append(
        f"best: {best}; another than none has to make {SLOWEST:.0%} of its way with {1e3 * WORTH:g} mm less ripple; "
        f"this arm has {own}"
    )
    if best != own:
        lines.append(f"to have it, set `interpolation: {best}` in the section `arm`")
    return Reply(answer, [*lines, f"written: {out / 'arm.json'}, {out / 'arm.png'}"])


def _shown(name: str, value: float) -> str:
    quantity, _, unit = name.rpartition("_")
    return f"{quantity.replace('_', ' ')} {'never' if math.isnan(value) else f'{value:.2f} {unit}'}"
