"""What a ROS 2 workspace needs beside pyproject.toml: where colcon, `ros2 run` and `ros2 launch` look for things."""

from pathlib import Path

from setuptools import setup


def files(pattern: str) -> list[str]:
    """Paths of files below this folder."""
    return sorted(str(path) for path in Path().glob(pattern) if path.is_file())


setup(
    license="Apache-2.0",
    python_requires=">=3.11",
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/robot_rl"]),
        ("share/robot_rl", ["package.xml"]),
        ("share/robot_rl/launch", files("launch/*.launch.py")),
        ("share/robot_rl/launch/config", files("launch/config/*")),
        ("lib/robot_rl", files("scripts/nodes/*")),
    ],
)
