"""`ros2 launch robot_rl robot.launch.py`; `--show-args` lists the arguments."""

import subprocess
from pathlib import Path
from sys import executable
from tempfile import TemporaryDirectory

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource

CELL = TemporaryDirectory(prefix="robot_rl-")  # until the launch has ended: nodes that are started again read it again
HELP = "a robot file (docs/arms.md) says all of the cell, its arm and task"


def read_robot_file(context: LaunchContext) -> None:
    """Give the bringup what the robot file says, as `robot-rl up robot --robot_file` does."""
    given = context.launch_configurations
    if not given["robot_file"]:
        return
    if twice := [name for name in ("params", "task_file", "driver") if given.get(name)]:
        raise RuntimeError(f"robot_file says what {', '.join(twice)} says, too; give one of them")
    program = [executable, "-Pm", "ros_nodes.bringup.robot_parameters"]
    command = [*program, given["robot_file"], given.get("task", ""), CELL.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    cell = yaml.safe_load(done.stdout)
    cell["without"] = str([*yaml.safe_load(given.get("without", "[]")), *cell["without"]])
    given |= cell


def generate_launch_description() -> LaunchDescription:
    """Return the description that `ros2 launch` runs."""
    source = PythonLaunchDescriptionSource(str(Path(__file__).parent / "bringup.launch.py"))
    file = DeclareLaunchArgument("robot_file", default_value="", description=HELP)
    bringup = IncludeLaunchDescription(source, launch_arguments={"bringup": "robot"}.items())
    return LaunchDescription([file, OpaqueFunction(function=read_robot_file), bringup])
