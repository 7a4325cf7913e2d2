"""What a person decided about a robot, and the robot file that follows from it, with comments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_rl.cell.goal import GoalConfig
from robot_rl.config.describe import as_typed, list_keys
from robot_rl.config.yaml_file import parse_yaml
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose

TOOL_DOWN = np.array([0.0, 1.0, 0.0, 0.0])
"""Attitude of a tool that points down, w, x, y, z."""


@dataclass(frozen=True)
class RobotPlan:
    """The decisions.

    Attributes:
        driver: Name of the arm's driver.
        config_type: Its class of settings.
        settings: Those that were decided.
        box_low: Least x, y, z of the tcp in the base frame [m].
        box_high: Largest.
        cameras: Sources by name.
        devices: Kinds of input devices.
        task: Its name.
        instruction: What is to be done.
        gripper: Whether the task moves the gripper.
        judge: Who decides about episodes, `person` or `goal`.
        start: Where the arm goes by itself before each episode, in the base frame; None: a person brings it there.
        measures_force: Whether the arm does.
    """

    driver: str
    config_type: type[Any]
    settings: dict[str, Any]
    box_low: tuple[float, float, float]
    box_high: tuple[float, float, float]
    cameras: dict[str, str]
    devices: tuple[str, ...]
    task: str
    instruction: str
    gripper: bool
    judge: str = "person"
    start: Pose | None = None
    measures_force: bool = True


def robot_file_text(plan: RobotPlan, name: str) -> str:
    """Return the robot file of a plan.

    Args:
        plan: The decisions.
        name: Of the file, for its first line.
    """
    cameras = [
        f"  {camera}: {{source: {_in_yaml(source)}, width: 640, height: 480, rate: 30}}"
        for camera, source in plan.cameras.items()
    ]
    names = f"[{', '.join(plan.cameras)}]"
    goal = plan.judge == "goal"
    lines = [
        f"# A robot: arm, limits, cameras and task. `robot-rl doctor {name}` examines it; nothing moves.",
        "# Lengths are in metres, angles in rad, forces in N, in the axes of the arm's base.",
        "",
        "arm:",
        f"  driver: {plan.driver}",
        *_arm_lines(plan),
        "",
        "limits: # of everything that is commanded, by policies and by people",
        f"  box_low: {_numbers(plan.box_low)} # least x, y, z of the tcp",
        f"  box_high: {_numbers(plan.box_high)} # largest; commissioning goes to each of these six limits",
        "  max_speed: 0.15 # [m/s]; raise it when you trust it",
        "  max_turn_rate: 0.8 # [rad/s]",
        "  max_force: 40.0 # a larger one stops the arm until a person lets it go on",
        "",
        "cell:",
        f"  judge: {plan.judge} # who decides whether an episode succeeded: person, or goal (the arm itself)",
        f"  scene: {'none' if goal else 'person'} # who makes the scene ready before each episode: person or none",
        f"  devices: [{', '.join(plan.devices)}] # with which a person leads the arm; none: the console (--console)",
        f"  {'# ' if plan.measures_force else ''}forces: unmeasured # accepts an arm that measures no force: then no "
        "limit on forces is in effect",
        "",
        "cameras:"
        if cameras
        else 'cameras: {} # e.g. wrist: {source: "realsense:", width: 640, height: 480, rate: 30}',
        *cameras,
        "",
        f"task: # {plan.task}",
        f"  instruction: {_in_yaml(plan.instruction)}",
        f"  max_steps: {30 if goal else 100} # of an episode, of a control period each",
        "  control_period: 0.1 # [s]",
        "  workspace: # where the tcp may go, from where the arm is when an episode begins",
        "    low: [-0.05, -0.05, -0.05]",
        "    high: [0.05, 0.05, 0.05]",
        "    yaw: 0.3",
        "    tilt: 0.1",
        f"  action_axes: [x, y, z{'' if goal else ', yaw'}] # that the policy moves; the others stay as they are",
        "  action_translation: 0.01 # largest motion in a step",
        "  action_rotation: 0.06",
        f"  gripper: {'true' if plan.gripper else 'false'}",
        "  force_limit: 30.0 # ends the episode as a failure",
        f"  cameras: {names}",
        *_start_lines(plan.start),
    ]
    if goal:
        lines += ["", "goal: # a point near the start, drawn for each episode, that the tcp has to reach and keep"]
        lines += [
            f"  {key.key}: {as_typed(key.default)} # {' '.join(key.doc.split())}" for key in list_keys(GoalConfig)
        ]
    return "\n".join(lines) + "\n"


def first_day(plan: RobotPlan, name: str) -> list[str]:
    """Return the commands of the first day, in their order, each with what it does."""
    name = shlex.quote(name)
    if plan.judge == "goal":
        return [
            f"robot-rl doctor {name}  # examine machine and arm; cure its faults",
            f"robot-rl commission {name} --move  # the first motions, slow, each with your consent",
            f"robot-rl train {plan.task} --robot {name} --steps 3000 --episodes 10 --out runs/{plan.task}"
            "  # it learns by itself",
            f"robot-rl eval runs/{plan.task} --robot {name} --episodes 50  # how often it succeeds",
        ]
    lead = f"--teleop {plan.devices[0]}" if plan.devices else "--console"
    pixels = " --obs pixels" if plan.cameras else ""
    return [
        f"robot-rl doctor {name}  # examine machine, arm and cameras; cure its faults",
        f"robot-rl commission {name} --move  # the first motions, slow, each with your consent",
        f"robot-rl bench arm {name} --move --out bench  # how well it follows; tune the controller until it does",
        f"robot-rl demo {plan.task} --robot {name}{pixels} {lead} --episodes 20 --out demos  # you show it",
        f"robot-rl train {plan.task} --robot {name}{pixels} --demos demos {lead} --out runs/first  # you help it",
        f"robot-rl eval runs/first --robot {name} {lead} --episodes 20  # it is alone, you judge",
    ]


def _start_lines(start: Pose | None) -> list[str]:
    """Return the start pose; without one, an example of it as a comment."""
    mark, speed = ("  # ", 0.05) if start is None else ("  ", 0.1)
    shown = start or Pose(np.array([0.5, 0.0, 0.2]), TOOL_DOWN)
    return [
        f"{mark}start: # where the arm goes by itself before each episode; without it, a person brings it there",
        f"{mark}  position: {_numbers(shown.position)}",
        f"{mark}  quaternion: {_numbers(shown.quaternion)} # w, x, y, z; 0, 1, 0, 0: the tool points down",
        f"{mark}  speed: {speed}",
    ]


def _arm_lines(plan: RobotPlan) -> list[str]:
    """Return the settings of the driver: decided ones first, the others as comments with their defaults."""
    keys = list_keys(plan.config_type)
    docs = {key.key: " ".join(key.doc.split()) for key in keys}
    lines = [
        f"  {name}: {_in_yaml(value)} # {docs.get(name, '')}".rstrip(" #") for name, value in plan.settings.items()
    ]
    return lines + [
        f"  # {key.key}: {as_typed(key.default)} # {docs[key.key]}".rstrip(" #")
        for key in keys
        if key.key not in plan.settings
    ]


def _in_yaml(value: Any) -> str:
    """Return a value as YAML that is read as the same one: a text with `: `, ` #` or only digits needs quotes."""
    text = as_typed(value)
    if not isinstance(value, str):
        return text
    try:
        same = parse_yaml(f"{{x: {text}}}", "it") == {"x": value}
    except ConfigError:
        same = False
    return text if same else json.dumps(value, ensure_ascii=False)


def _numbers(values: Iterable[float]) -> str:
    return f"[{', '.join(f'{round(float(value), 4) + 0.0:g}' for value in values)}]"
