"""Any bringup of `config/bringups.yaml`, the table that `robot-rl up` reads as well."""

import json
import subprocess
from pathlib import Path
from sys import executable
from tempfile import TemporaryDirectory

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch_ros.actions import Node

CONFIG, END = Path(__file__).parent / "config", ((2,), (0, 2, 130, -2))  # exit codes after which all ends, if main
FILES = TemporaryDirectory(prefix="robot_rl-")  # until the launch has ended: nodes that are started again read it again


def nodes(context: LaunchContext) -> list[Node]:
    """Return the nodes of the requested bringup, those that `robot-rl up` starts."""
    context.environment.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(CONFIG / "fastdds.xml"))
    given = dict(context.launch_configurations)
    program = [executable, "-Pm", "ros_nodes.bringup.plan", FILES.name]
    done = subprocess.run(program, input=json.dumps(given), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    made = []
    for n in json.loads(done.stdout):
        kw = {"executable": executable, "arguments": ["-Pm", f"ros_nodes.nodes.{n['executable']}"], "output": "both"}
        kw |= {"ros_arguments": n["ros_arguments"], "respawn": n["respawn"], "respawn_delay": 1.0}
        kw["on_exit"] = lambda e, _, n=n: None if n["respawn"] and e.returncode not in END[n["main"]] else Shutdown()
        made.append(Node(exec_name=n["name"], namespace=given["namespace"], **kw))
    return made


def generate_launch_description() -> LaunchDescription:
    """Return the description that `ros2 launch` runs."""
    table = yaml.safe_load((CONFIG / "bringups.yaml").read_text())
    about = {**table["arguments"], "bringup": {"default": "sim", "help": "one of " + ", ".join(table["bringups"])}}
    made = (DeclareLaunchArgument(n, default_value=str(a["default"]), description=a["help"]) for n, a in about.items())
    return LaunchDescription([*made, OpaqueFunction(function=nodes)])
