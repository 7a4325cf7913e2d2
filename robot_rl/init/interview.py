"""The questions of `robot-rl init`, and the plan that follows from the answers."""

from __future__ import annotations

import contextlib
import keyword
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from robot_rl.arm.driver import ARM_GROUP, DriverClass, find_driver
from robot_rl.config.describe import list_keys
from robot_rl.config.load import component_from_dict
from robot_rl.config.yaml_file import parse_yaml
from robot_rl.doctor.standing.observation import observe
from robot_rl.env.registry import names
from robot_rl.errors import ArmStoppedError, ConfigError, RobotRLError
from robot_rl.geometry import Pose
from robot_rl.init.plan import TOOL_DOWN, RobotPlan
from robot_rl.init.plugged_in import PluggedIn
from robot_rl.init.questions import Questions

CONNECTS = re.compile(r"^(host|ip|address|port|device|url|.*_(host|ip|port|address))$")
"""Names of settings that connect an arm: they are put to the person, the others keep their defaults."""
TASK = "insert the plug into the socket"
BOX = ("0.35 -0.15 0.1", "0.65 0.15 0.4")
AROUND_START = 0.06
"""Half an edge of the box that is proposed around a start pose [m]: a centimetre more than where the policy goes."""
JUDGES = [
    ("person", "you, by the console or a device"),
    (
        "goal",
        "the arm itself: its tool shall come to a point. Needs no camera and no person: a first task for a new arm",
    ),
]
HERE, NONE = "here", "none"
"""Answers to where an episode starts: where the arm stands now; or a person brings it there."""
LOOK, LOOK_AGE = 0.5, 0.2
"""How long a standing arm is looked at, and the oldest pose of it [s]."""


def interview(
    questions: Questions, found: PluggedIn, *, settings: Iterable[str] = (), cameras: Iterable[str] = ()
) -> RobotPlan:
    """Put the questions, and return the plan.

    Args:
        questions: Puts them, or takes the flags.
        found: What is plugged in.
        settings: `KEY=VALUE` of the driver, by flags.
        cameras: `NAME=SOURCE`, by flags; then none is offered.

    Raises:
        ArmStoppedError: if the arm shall be looked at and cannot be reached.
        ConfigError: if a flag is wrong, or an answer is needed and nobody is there.
        PluginError: if the driver's package cannot be imported.
    """
    driver = questions.choose("--arm", "Which arm?", _drivers())
    kind = find_driver(driver)
    decided = _settings(questions, driver, kind.Config, found, settings)
    judge = questions.choose("--judge", "Who decides whether an episode succeeded?", JUDGES, "person")
    start, measured = _start(questions, kind, decided, judge)
    proposed = BOX if start is None else _box_around(start)
    low = questions.ask("--box-low", "Least x y z of the tool in the base frame [m]?", proposed[0], _three_numbers)
    high = questions.ask("--box-high", "Largest x y z?", proposed[1], _three_numbers)
    box = tuple(map(_floats, (low, high)))
    if any(a >= b for a, b in zip(*box, strict=True)):
        raise ConfigError(f"every number of --box-low ({low}) has to be below that of --box-high ({high})")
    if start is not None and not all(a <= x <= b for a, x, b in zip(box[0], start.position, box[1], strict=True)):
        at = " ".join(f"{value:g}" for value in start.position)
        raise ConfigError(f"the start ({at}) has to be in the box, from {low} to {high}; move one of them")
    offered = tuple(cameras)
    named = _named_cameras(offered) if offered else _cameras(questions, found)
    devices = [(name, "plugged in") for name in found.devices] + [("console", "in the browser")]
    device = questions.choose("--teleop", "With what does a person lead the arm?", devices, devices[0][0])
    usual = ("touch", "bring the tool to the goal") if judge == "goal" else ("first_task", TASK)
    task = questions.ask("--task", "Name of the task?", usual[0], _name)
    instruction = questions.ask("--instruction", "What is to be done, in a sentence?", usual[1])
    gripper = questions.choose("--gripper", "Does the task move the gripper?", [("no", ""), ("yes", "")], "no")
    led = () if device == "console" else (device,)
    return RobotPlan(
        driver=driver,
        config_type=kind.Config,
        settings=decided,
        box_low=box[0],
        box_high=box[1],
        cameras=named,
        devices=led,
        task=task,
        instruction=instruction,
        gripper=gripper == "yes",
        judge=judge,
        start=start,
        measures_force="wrench" in measured,
    )


def _drivers() -> list[tuple[str, str]]:
    """Return the drivers that a robot file can name here, each with what it drives."""
    rows = []
    for name in names(ARM_GROUP):
        with contextlib.suppress(RobotRLError):  # what it needs is not installed, such as ROS
            kind = find_driver(name)
            if not getattr(kind, "only_in_robot_node", False):
                text = (kind.Config.__doc__ or "").strip().splitlines()
                rows.append((name, text[0].rstrip(".") if text else ""))
    return rows


def _settings(
    questions: Questions, driver: str, config_type: type[Any], found: PluggedIn, given: Iterable[str]
) -> dict[str, Any]:
    """Return the settings that connect the arm, and those of flags."""
    decided: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--setting {text}: has to be KEY=VALUE")
        decided[key] = parse_yaml(value, f"--setting {text}")
    for described in list_keys(config_type):
        if CONNECTS.match(described.key) and described.key not in decided:
            default = str(described.default) if described.default not in ("", None) else None
            if isinstance(described.default, str) and "port" in described.key and found.ports:
                default = found.ports[0]
            text = " ".join(described.doc.split()).rstrip(".") or described.key
            flag = f"--setting {described.key}=..."
            answer = questions.ask(flag, f"{driver}, {described.key}: {text}?", default)
            is_text = isinstance(described.default, str) or described.default is None
            decided[described.key] = answer if is_text else parse_yaml(answer, flag)
    component_from_dict(config_type, decided, f"settings of {driver}")
    return decided


def _start(
    questions: Questions, kind: DriverClass, settings: dict[str, Any], judge: str
) -> tuple[Pose | None, frozenset[str]]:
    """Return the start pose, and what the arm measures as far as that is known.

    Raises:
        ArmStoppedError: if the arm cannot be reached, or says nothing.
    """
    place = questions.ask(
        "--start",
        f"Where does an episode start? {HERE}: where the arm is now (it is switched on, and holds), x y z: there, the "
        f"tool pointing down, or {NONE}: a person brings it there",
        HERE if judge == "goal" else NONE,
        _place,
    )
    known = getattr(kind, "measures", None)  # of some drivers it is known once the arm is open
    measured = known if isinstance(known, frozenset) else frozenset({"wrench"})
    if place == NONE and judge == "goal":
        raise ConfigError(f"--start: the goals lie around it, so it has to be {HERE} or x y z")
    if place == NONE:
        return None, measured
    if place != HERE:
        return Pose(np.array(_floats(place)), TOOL_DOWN), measured
    config = component_from_dict(kind.Config, settings, "--start here")
    seen = observe(lambda host: kind(config, host), LOOK, LOOK_AGE)
    if seen.faults or not seen.samples["pose"]:
        raise ArmStoppedError(f"--start {HERE}: {'; '.join(seen.faults) or 'the arm does not say where it is'}")
    pose: Pose = seen.samples["pose"][-1][2]
    return pose, seen.measures


def _place(text: str) -> str:
    if text not in (HERE, NONE):
        _floats(text)
    return text


def _box_around(start: Pose) -> tuple[str, str]:
    low, high = (start.position + sign * AROUND_START for sign in (-1.0, 1.0))
    return tuple(" ".join(f"{value:.2f}" for value in corner) for corner in (low, high))  # type: ignore[return-value]


def _cameras(questions: Questions, found: PluggedIn) -> dict[str, str]:
    """Offer each camera that is plugged in."""
    named: dict[str, str] = {}
    free = ["wrist", "side", "front", *(f"camera{number}" for number in range(4, 20))]

    def check(answer: str) -> str:
        if answer in named:
            raise ConfigError(f"{answer} is the name of another camera")
        return answer if answer == "-" else _name(answer)

    for source, what in found.cameras:
        question = f"Name of the camera {what} ({source}), or - to leave it out?"
        answer = questions.ask(f"--camera NAME={source}", question, free[len(named)], check)
        if answer != "-":
            named[answer] = source
    return named


def _named_cameras(offered: Iterable[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, source in map(_named_camera, offered):
        if name in named:
            raise ConfigError(f"--camera {name}={source}: {name} is the name of another camera, {named[name]}")
        named[name] = source
    return named


def _named_camera(text: str) -> tuple[str, str]:
    name, equals, source = text.partition("=")
    if not equals or ":" not in source:
        raise ConfigError(f"--camera {text}: has to be NAME=SOURCE, e.g. wrist=realsense:0123456789")
    return _name(name), source


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", text) or keyword.iskeyword(text):
        raise ConfigError(f"{text!r} is no name: small letters, digits and _, and a letter first")
    return text


def _three_numbers(text: str) -> str:
    _floats(text)
    return text


def _floats(text: str) -> tuple[float, float, float]:
    try:
        x, y, z = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        x = y = z = math.nan
    if not all(map(math.isfinite, (x, y, z))):
        raise ConfigError(f"{text!r} are not three numbers, e.g. 0.35 -0.15 0.1")
    return x, y, z
