"""The robot file: a real workcell in YAML, i.e. its arm, limits, cameras, task and devices.

`robot-rl train TASK --robot robot.yaml` reads it before anything moves; docs/arms.md explains every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass

from robot_rl.arm.robot_connection import CameraConnection, RobotConnection, StateAge, read_connection
from robot_rl.camera.crop_profile import CropProfile, read_crop_profile
from robot_rl.cell.goal import GoalConfig
from robot_rl.cell.task_file import load_task, task_from
from robot_rl.cell.tcp_region import check_start_in_box
from robot_rl.config.command_limits import ArmCap
from robot_rl.config.field_types import STRICT, NonNegative, PositiveReal
from robot_rl.config.load import component_from_dict
from robot_rl.config.yaml_file import read_yaml
from robot_rl.env.action_mapping import check_no_wrench
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError

SECTIONS = ("arm", "limits", "cap", "cell", "cameras", "crops", "task", "goal", "reverse")
"""Keys at the top of a robot file."""
OF_REVERSE = ("task", "judge", "goal")
"""What may differ for the task that leads back; everything else belongs to the arm, and there is one."""
EXAMPLE = "docs/arms.md shows one"


@checked_dataclass(frozen=True, config=STRICT)
class CellConfig(StateAge):
    """How the parts of the workcell work together."""

    judge: Literal["person", "goal"] = "person"
    """Who decides whether an episode succeeded: a person, beside whom a classifier or labels may (`reward.kind`); or
    `goal`, the arm itself: the tcp is at a goal drawn for each episode."""
    scene: Literal["person", "none"] = "person"
    """Who makes the scene ready before each episode: a person, who then presses Resume; or nobody."""
    devices: tuple[str, ...] = ()
    """Input devices of the operator, as `--teleop`, which replaces them."""
    forces: Literal["required", "unmeasured"] = "required"
    """`unmeasured` accepts an arm that measures no force: then no limit on forces is in effect."""
    max_camera_age: PositiveReal = 0.25
    """Oldest frame that may be used [s]."""
    wrench_cutoff: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 10.0
    """Corner frequency of the low-pass of the wrench [Hz]; 0: none."""


@checked_dataclass(frozen=True, config=STRICT)
class CameraConfig(CameraConnection):
    """A camera of the workcell: its connection, and what is done with its frames."""

    crop: tuple[NonNegative, ...] = ()
    """What is cut out: left, top, width, height [px]; none: the largest square in the middle."""
    frozen_after: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """How long a picture may stay the same, bit for bit, before the camera counts as frozen [s]; 0: for ever."""


@dataclass(frozen=True)
class RobotFile:
    """A robot file that has been read and checked.

    Attributes:
        connection: The arm: its driver, limits and cap.
        cell: How the parts work together.
        cameras: Cameras by name; a crop of the profile stands in its camera.
        crops: The profile of their crops.
        task: Facts of the task.
        goal: Where the arm judges itself.
        reverse: Name of the task that leads back, whose facts the file has too; empty: it has none.
    """

    connection: RobotConnection
    cell: CellConfig
    cameras: dict[str, CameraConfig]
    crops: CropProfile
    task: TaskSpec
    goal: GoalConfig
    reverse: str = ""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.connection.path

    @property
    def task_cameras(self) -> tuple[str, ...]:
        """Names of the cameras of its task: those that the task names, else all of them."""
        return self.task.cameras or tuple(self.cameras)


def read_robot_file(path: Path, task: str) -> RobotFile:
    """Read and check a robot file for a task of that name; nothing is opened.

    If `task` names a reverse, and that is the name, its facts are those of the section `reverse`, and for the rest
    those of `task`.

    Raises:
        ConfigError: naming the file and what is wrong in it: a key, a value, a setting of another driver.
        UnknownNameError: if no driver of that name is installed.
        PluginError: if the package behind it cannot be imported.
    """
    tree = read_yaml(path, "robot file")
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: has to be a mapping with the keys {', '.join(SECTIONS)}; {EXAMPLE}")
    if unknown := sorted(map(str, tree.keys() - set(SECTIONS))):
        raise ConfigError(f"{path}: unknown {', '.join(unknown)}; valid: {', '.join(SECTIONS)}; {EXAMPLE}")
    if missing := [key for key in ("arm", "limits", "task") if key not in tree]:
        raise ConfigError(f"{path}: {', '.join(missing)} is missing; {EXAMPLE}")
    _check_cap(tree.get("cap", {}), path)
    reverse = _name_of_reverse(tree, path) if "reverse" in tree else ""
    if reverse and task == reverse:
        tree = _for_reverse(tree, path)
    connection = read_connection(path)
    cell = component_from_dict(CellConfig, tree.get("cell", {}), f"{path}: cell")
    cameras, crops = _cameras(tree, path)
    where = "task, with what differs in reverse" if reverse and task == reverse else "task"
    spec = _task(tree["task"], task, path, where)
    check_start_in_box(spec, connection.limits, str(path))
    check_no_wrench(spec, f"the driver {connection.driver} in {path}")
    if unknown_cameras := [name for name in spec.cameras if name not in cameras]:
        raise ConfigError(
            f"{path}: task: cameras: no {', '.join(unknown_cameras)} among {', '.join(cameras) or 'none'}"
        )
    if "goal" in tree and cell.judge != "goal":
        raise ConfigError(f"{path}: goal has no effect without `judge: goal` in cell")
    goal = component_from_dict(GoalConfig, tree.get("goal", {}), f"{path}: goal")
    if len(goal.centre) not in (0, 3):
        raise ConfigError(f"{path}: goal: centre has {len(goal.centre)} numbers; it is x, y, z in the base frame [m]")
    return RobotFile(connection, cell, cameras, crops, spec, goal, reverse)


def _name_of_reverse(tree: Mapping[str, Any], path: Path) -> str:
    """Return the name of the task of the section `reverse`.

    Raises:
        ConfigError: if the section is wrong, or `task` does not name it.
    """
    section = tree["reverse"]
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: reverse: has to be a mapping with what differs: {', '.join(OF_REVERSE)}")
    if unknown := sorted(map(str, section.keys() - set(OF_REVERSE))):
        raise ConfigError(f"{path}: reverse: unknown {', '.join(unknown)}; valid: {', '.join(OF_REVERSE)}")
    name = _facts(tree["task"], path).get("reverse", "")
    if not name:
        raise ConfigError(f"{path}: the section reverse has no effect without its name, `reverse: NAME` in task")
    return str(name)


def _for_reverse(tree: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the file as it is for the task that leads back."""
    own = tree["reverse"]
    facts = {**_facts(tree["task"], path), **_facts(own.get("task", {}), path), "reverse": ""}
    cell = tree.get("cell", {})
    merged = {**tree, "task": facts}
    if "judge" in own:
        merged["cell"] = {**cell, "judge": own["judge"]} if isinstance(cell, dict) else cell
    if "goal" in own:
        merged["goal"] = own["goal"]
    elif own.get("judge") == "person":
        merged.pop("goal", None)
    return merged


def _facts(tree: Any, path: Path) -> dict[str, Any]:
    """Return the facts of a task as they stand there, or in the file that is named, relative to the robot file."""
    facts = read_yaml(path.parent / Path(tree).expanduser(), "task file") if isinstance(tree, str) else tree
    return facts if isinstance(facts, dict) else {}


def crop_facts(path: Path) -> dict[str, Any]:
    """Return what a run records of the crops of a robot file's cameras.

    Raises:
        ConfigError: as for `read_robot_file`.
    """
    cameras, crops = _cameras(read_yaml(path, "robot file"), path)
    own = {name: camera.crop for name, camera in cameras.items() if camera.crop}
    frames = {name: (camera.width, camera.height) for name, camera in cameras.items()}
    return CropProfile(crops.name, crops.version, own).facts(frames)


def _check_cap(tree: Any, path: Path) -> None:
    """Refuse what has no effect: the box of the cap is that of the limits, and no node commands."""
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: cap: has to be a mapping, e.g. `cap_speed: 0.3`")
    own = {field.name for field in fields(ArmCap)} - {"commander", "cap_box_low", "cap_box_high"}
    if unknown := sorted(map(str, tree.keys() - own)):
        raise ConfigError(
            f"{path}: cap: unknown {', '.join(unknown)}; valid: {', '.join(sorted(own))}; its box is that of limits"
        )


def _cameras(file: dict[str, Any], path: Path) -> tuple[dict[str, CameraConfig], CropProfile]:
    """Return the cameras of a robot file, cropped as its profile says, and the profile."""
    tree, profile = file.get("cameras", {}), read_crop_profile(file.get("crops"), path)
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: cameras: has to map names to cameras, e.g. `wrist: {{source: realsense:}}`")
    if unknown := [name for name in profile.crops if name not in tree]:
        raise ConfigError(f"{path}: crops: no {', '.join(unknown)} among {', '.join(map(str, tree)) or 'no cameras'}")
    cameras = {}
    for name, settings in tree.items():
        where = f"{path}: cameras: {name}"
        camera = component_from_dict(CameraConfig, settings, where)
        if len(camera.crop) not in (0, 4):
            raise ConfigError(f"{where}: crop has {len(camera.crop)} numbers; it is left, top, width, height [px]")
        if name in profile.crops:
            if camera.crop:
                raise ConfigError(f"{where}: crop stands in the profile {profile.name} (crops) as well; remove one")
            camera = replace(camera, crop=profile.crops[name])
        cameras[str(name)] = camera
    return cameras, profile


def _task(tree: Any, name: str, path: Path, where: str) -> TaskSpec:
    """Return the facts of the task: of the file that is named, relative to the robot file, or as they stand there."""
    if isinstance(tree, str):
        return load_task(path.parent / Path(tree).expanduser(), name)
    return task_from(tree, name, f"{path}: {where}")
