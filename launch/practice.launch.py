"""`ros2 launch robot_rl practice.launch.py`; `--show-args` lists the arguments."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource


def generate_launch_description() -> LaunchDescription:
    """Return the description that `ros2 launch` runs."""
    source = PythonLaunchDescriptionSource(str(Path(__file__).parent / "bringup.launch.py"))
    return LaunchDescription([IncludeLaunchDescription(source, launch_arguments={"bringup": "practice"}.items())])
