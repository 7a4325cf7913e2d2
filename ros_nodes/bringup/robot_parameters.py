"""The parameters that make of the nodes of a bringup what a robot file says; needs no ROS.

So `robot-rl train TASK --robot robot.yaml` and `robot-rl up robot --robot_file robot.yaml` drive the same cell, with
the same limits and the same judge. For `ros2 launch` it is a program: `robot_parameters FILE TASK FOLDER` prints the
arguments of the bringup as YAML.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from robot_rl.cell.robot_file import CameraConfig, RobotFile, read_robot_file
from robot_rl.cell.task_file import task_content
from robot_rl.config.describe import list_keys
from robot_rl.config.yaml_file import dump_yaml
from robot_rl.errors import ConfigError
from ros_nodes.bringup.program import answer
from ros_nodes.bringup.table import read_table

CAMERAS = "camera_node"


@dataclass(frozen=True)
class CellFiles:
    """A robot file as the files that nodes read.

    Attributes:
        params: Parameter file of ROS (YAML).
        task: The task's facts (YAML).
        driver: Of the arm.
        without: Nodes of the bringup that this cell does not have, by their names in the table.
    """

    params: Path
    task: Path
    driver: str
    without: tuple[str, ...]

    def arguments(self) -> dict[str, Any]:
        """Return what the bringup is given."""
        files = {"params": str(self.params), "task_file": str(self.task)}
        return files | {"driver": self.driver, "without": list(self.without)}


def write_cell(path: Path, task: str, folder: Path) -> CellFiles:
    """Read a robot file, and write what the nodes of its cell read into a folder.

    Raises:
        ConfigError: if it is not valid, or has what the nodes cannot do.
        UnknownNameError: if no driver of that name is installed.
    """
    robot = read_robot_file(path, task)
    sections = {f"/**/{node}": {"ros__parameters": values} for node, values in node_parameters(robot).items() if values}
    files = CellFiles(
        folder / "cell.yaml", folder / "task.yaml", robot.connection.driver, () if robot.cameras else ("cell_cameras",)
    )
    files.params.write_text(yaml.safe_dump(sections), encoding="utf-8")
    files.task.write_text(dump_yaml(task_content(robot.task)), encoding="utf-8")
    return files


def node_parameters(robot: RobotFile) -> dict[str, dict[str, Any]]:
    """Return the parameters of each node by its name.

    Raises:
        ConfigError: if the file has what the nodes cannot do.
    """
    connection, cell = robot.connection, robot.cell
    cap = {key: value for key, value in asdict(connection.cap).items() if key != "commander"}
    ages = {"max_age": connection.max_age, "max_camera_age": cell.max_camera_age}
    goal = {}
    if cell.judge == "goal":
        if robot.goal.centre:
            raise ConfigError(f"{robot.path}: goal: over topics it has no centre, but lies around the start; remove it")
        goal = {f"goal_{key}": value for key, value in asdict(robot.goal).items() if key != "centre"}
    nodes = {
        "robot_node": {
            **_of_driver(robot),
            **cap,
            "max_age": connection.max_age,
            "wrench_cutoff": cell.wrench_cutoff,
            "interpolation": connection.interpolation,
        },
        "safety_node": asdict(connection.limits) | {"max_age": connection.max_age},
        "task_node": {"judge": cell.judge, "scene": cell.scene, **goal},
        "teleop_node": _of_devices(robot),
        CAMERAS: _of_cameras(robot),
        "actor_node": ages | {"robot_file": str(robot.path.resolve())},
    }
    return {node: _plain(values) for node, values in nodes.items()}


def _of_driver(robot: RobotFile) -> dict[str, Any]:
    """Return the settings that differ from the driver's own; those are the node's defaults, too.

    Raises:
        ConfigError: if one is no parameter of a node.
    """
    config = robot.connection.driver_config
    usual = {key.key: key.default for key in list_keys(type(config))}
    changed = {key: value for key, value in asdict(config).items() if usual.get(key, ...) != value}
    for key, value in changed.items():
        if isinstance(value, Mapping) or value is None:
            raise ConfigError(
                f"{robot.path}: arm: {key} cannot be a parameter of robot_node; drive this arm without ROS"
            )
    return changed


def _of_devices(robot: RobotFile) -> dict[str, Any]:
    devices = robot.cell.devices
    if len(devices) > 1:
        raise ConfigError(f"{robot.path}: cell: devices: over topics there is one; here: {', '.join(devices)}")
    return {"device": devices[0]} if devices else {}


def _of_cameras(robot: RobotFile) -> dict[str, Any]:
    """Return the parameters of the node for all cameras, which are captured alike.

    Raises:
        ConfigError: if they are not.
    """
    cameras = robot.cameras
    if not cameras:
        return {}
    first = next(iter(cameras.values()))
    for name, camera in cameras.items():
        if _captured(camera) != _captured(first):
            raise ConfigError(
                f"{robot.path}: cameras: {name}: width, height, rate and frozen_after have to be those of the "
                "others, as one camera_node reads all of them"
            )
    crops = [f"{name}={','.join(map(str, camera.crop))}" for name, camera in cameras.items() if camera.crop]
    return {
        "cameras": [f"{name}={camera.source}" for name, camera in cameras.items()],
        "crops": crops,
        "capture_width": first.width,
        "capture_height": first.height,
        "capture_rate": first.rate,
        "frozen_after": first.frozen_after,
    }


def _captured(camera: CameraConfig) -> tuple[float, ...]:
    return camera.width, camera.height, camera.rate, camera.frozen_after


def _plain(value: Any) -> Any:
    """Return what YAML and ROS know; an empty list is one empty text, as ROS cannot infer its type."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value] or [""]
    return value


def main() -> int:
    """Do it for `ros2 launch`."""
    file, task, folder = sys.argv[1:]
    task = task or read_table()["arguments"]["task"]["default"]
    return answer(lambda: write_cell(Path(file), task, Path(folder)).arguments())


if __name__ == "__main__":
    sys.exit(main())
