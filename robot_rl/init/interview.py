"""The questions of `robot-rl init`, and the plan that follows from the answers."""

from __future__ import annotations

import contextlib
import keyword
import re
from collections.abc import Iterable
from typing import Any

from robot_rl.arm.driver import ARM_GROUP, find_driver
from robot_rl.config.describe import list_keys
from robot_rl.config.load import component_from_dict
from robot_rl.config.yaml_file import parse_yaml
from robot_rl.env.registry import names
from robot_rl.errors import ConfigError, RobotRLError
from robot_rl.init.plan import RobotPlan
from robot_rl.init.plugged_in import PluggedIn
from robot_rl.init.questions import Questions

CONNECTS = re.compile(r"^(host|ip|address|port|device|url|.*_(host|ip|port|address))$")
"""Names of settings that connect an arm: they are put to the person, the others keep their defaults."""
BOX = ("0.35 -0.15 0.1", "0.65 0.15 0.4")


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
        ConfigError: if a flag is wrong, or an answer is needed and nobody is there.
        PluginError: if the driver's package cannot be imported.
    """
    driver = questions.choose("--arm", "Which arm?", _drivers())
    config_type = find_driver(driver).Config
    decided = _settings(questions, driver, config_type, found, settings)
    low = questions.ask("--box-low", "Least x y z of the tool in the base frame [m]?", BOX[0], _three_numbers)
    high = questions.ask("--box-high", "Largest x y z?", BOX[1], _three_numbers)
    box = tuple(map(_floats, (low, high)))
    if any(a >= b for a, b in zip(*box, strict=True)):
        raise ConfigError(f"every number of --box-low ({low}) has to be below that of --box-high ({high})")
    offered = tuple(cameras)
    named = dict(map(_named_camera, offered)) if offered else _cameras(questions, found)
    devices = [(kind, "plugged in") for kind in found.devices] + [("console", "in the browser")]
    device = questions.choose("--teleop", "With what does a person lead the arm?", devices, devices[0][0])
    task = questions.ask("--task", "Name of the task?", "first_task", _name)
    instruction = questions.ask(
        "--instruction", "What is to be done, in a sentence?", "insert the plug into the socket"
    )
    gripper = questions.choose("--gripper", "Does the task move the gripper?", [("no", ""), ("yes", "")], "no")
    led = () if device == "console" else (device,)
    return RobotPlan(driver, config_type, decided, box[0], box[1], named, led, task, instruction, gripper == "yes")


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
        raise ConfigError(f"{text!r} are not three numbers, e.g. 0.35 -0.15 0.1") from None
    return x, y, z
