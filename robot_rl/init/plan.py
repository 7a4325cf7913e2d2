"""What a person decided about a robot, and the robot file that follows from it, with comments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robot_rl.config.describe import as_typed, list_keys


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


def robot_file_text(plan: RobotPlan, name: str) -> str:
    """Return the robot file of a plan.

    Args:
        plan: The decisions.
        name: Of the file, for its first line.
    """
    cameras = [
        f"  {camera}: {{source: {as_typed(source)}, width: 640, height: 480, rate: 30}}"
        for camera, source in plan.cameras.items()
    ]
    names = f"[{', '.join(plan.cameras)}]"
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
        "  judge: person # who decides whether an episode succeeded",
        "  scene: person # who makes the scene ready before each episode",
        f"  devices: [{', '.join(plan.devices)}] # with which a person leads the arm; none: the console (--console)",
        "  # forces: unmeasured # accepts an arm that measures no force: then no limit on forces is in effect",
        "",
        "cameras:"
        if cameras
        else 'cameras: {} # e.g. wrist: {source: "realsense:", width: 640, height: 480, rate: 30}',
        *cameras,
        "",
        f"task: # {plan.task}",
        f"  instruction: {as_typed(plan.instruction)}",
        "  max_steps: 100 # of an episode: 10 s",
        "  control_period: 0.1 # [s]",
        "  workspace: # where the tcp may go, from where the arm is when an episode begins",
        "    low: [-0.05, -0.05, -0.05]",
        "    high: [0.05, 0.05, 0.05]",
        "    yaw: 0.3",
        "    tilt: 0.1",
        "  action_axes: [x, y, z, yaw] # that the policy moves; the others stay as they are",
        "  action_translation: 0.01 # largest motion in a step",
        "  action_rotation: 0.06",
        f"  gripper: {'true' if plan.gripper else 'false'}",
        "  force_limit: 30.0 # ends the episode as a failure",
        f"  cameras: {names}",
        "  # start: # where the arm goes by itself before each episode; without it, a person brings it there",
        "  #   position: [0.5, 0.0, 0.2]",
        "  #   quaternion: [0, 1, 0, 0] # w, x, y, z: the tool points down",
        "  #   speed: 0.05",
    ]
    return "\n".join(lines) + "\n"


def first_day(plan: RobotPlan, name: str) -> list[str]:
    """Return the commands of the first day, in their order, each with what it does."""
    lead = f"--teleop {plan.devices[0]}" if plan.devices else "--console"
    pixels = " --obs pixels" if plan.cameras else ""
    return [
        f"robot-rl doctor {name}  # examine machine, arm and cameras; cure its faults",
        f"robot-rl commission {name} --move  # the first motions, slow, each with your consent",
        f"robot-rl bench arm {name} --move --out bench  # how well it follows; tune the controller until it does",
        f"robot-rl demo {plan.task} --robot {name}{pixels} {lead} --episodes 20 --out demos  # you show it",
        f"robot-rl train {plan.task} --robot {name}{pixels} --demos demos {lead} --out runs/first  # you help it",
        f"robot-rl eval runs/first --robot {name} --episodes 20  # how often it succeeds without help",
    ]


def _arm_lines(plan: RobotPlan) -> list[str]:
    """Return the settings of the driver: decided ones first, the others as comments with their defaults."""
    keys = list_keys(plan.config_type)
    docs = {key.key: " ".join(key.doc.split()) for key in keys}
    lines = [
        f"  {name}: {as_typed(value)} # {docs.get(name, '')}".rstrip(" #") for name, value in plan.settings.items()
    ]
    return lines + [
        f"  # {key.key}: {as_typed(key.default)} # {docs[key.key]}".rstrip(" #")
        for key in keys
        if key.key not in plan.settings
    ]


def _numbers(values: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"
