"""Any bringup of `config/bringups.yaml`, the table that `robot-rl up` reads as well."""

import sys
from pathlib import Path

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable, Shutdown
from launch_ros.actions import Node

CONFIG = Path(__file__).parent / "config"
TABLE = yaml.safe_load((CONFIG / "bringups.yaml").read_text())


def filled(value: object, args: dict[str, str]) -> object:
    """Return a parameter with the arguments in their places; an empty list is one empty text, as in `robot-rl up`."""
    if isinstance(value, list):
        return [p for i in value for q in [filled(i, args)] for p in (q if isinstance(q, list) else [q]) if p] or [""]
    text = value.format(**args) if isinstance(value, str) else value
    return [""] if text == "[]" else yaml.safe_load(text) if text and text != value else text


def nodes(context: LaunchContext) -> list[Node]:
    """Return the nodes of the requested bringup."""
    args, made = dict(context.launch_configurations), {}
    args |= {n: str(d["given" if args[d["of"]] else "otherwise"]) for n, d in TABLE["derived"].items()}
    for name, entry in ((n, TABLE["nodes"][n]) for n in filled(TABLE["bringups"][args["bringup"]]["nodes"], args)):
        table = {key: filled(value, args) for key, value in entry.get("parameters", {}).items()}
        end = {"on_exit": Shutdown()} if entry.get("main") else {"respawn": entry.get("respawn", False)}
        run = {"executable": sys.executable, "arguments": ["-m", f"ros_nodes.nodes.{entry['executable']}"], **end}
        made[name] = Node(**run, output="screen", namespace=args["namespace"], parameters=[args["params"] or {}, table])
    return [made[name] for name in yaml.safe_load(args["only"]) or made]


def generate_launch_description() -> LaunchDescription:
    """Return the description that `ros2 launch` runs."""
    about = {**TABLE["arguments"], "bringup": {"default": "sim", "help": "one of " + ", ".join(TABLE["bringups"])}}
    profile = SetEnvironmentVariable("FASTRTPS_DEFAULT_PROFILES_FILE", str(CONFIG / "fastdds.xml"))
    made = (DeclareLaunchArgument(n, default_value=str(a["default"]), description=a["help"]) for n, a in about.items())
    return LaunchDescription([*made, profile, OpaqueFunction(function=nodes)])
