"""Any bringup of `config/bringups.yaml`, the table that `robot-rl up` reads as well."""

from pathlib import Path
from sys import executable

import yaml
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch_ros.actions import Node

CONFIG, END = Path(__file__).parent / "config", ((2,), (0, 2, 130, -2))  # exit codes after which all ends, if main
TABLE = yaml.safe_load((CONFIG / "bringups.yaml").read_text())


def filled(value: object, args: dict[str, str]) -> object:
    """Return a parameter with the arguments in their places; an empty list is one empty text, as in `robot-rl up`."""
    if isinstance(value, list):
        return [p for i in value for q in [filled(i, args)] for p in (q if isinstance(q, list) else [q]) if p] or [""]
    text = value.format(**args) if isinstance(value, str) else value
    return [""] if text == "[]" else yaml.safe_load(text) if text and text != value else text


def nodes(context: LaunchContext) -> list[Node]:
    """Return the nodes of the requested bringup."""
    context.environment.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(CONFIG / "fastdds.xml"))
    arg, made = dict(context.launch_configurations), {}
    arg |= {n: str(d["given" if arg[d["of"]] else "otherwise"]) for n, d in TABLE["derived"].items()}
    for name, n in ((k, TABLE["nodes"][k]) for k in filled(TABLE["bringups"][arg["bringup"]]["nodes"], arg)):
        kw = {"executable": executable, "arguments": ["-Pm", f"ros_nodes.nodes.{n['executable']}"], "output": "both"}
        kw |= {"parameters": [arg["params"] or {}, {k: filled(v, arg) for k, v in n.get("parameters", {}).items()}]}
        kw["on_exit"] = lambda e, _, n=n: Shutdown() if "respawn" not in n or e.returncode in END["main" in n] else None
        made[name] = Node(exec_name=name, namespace=arg["namespace"], respawn="respawn" in n, respawn_delay=1.0, **kw)
    return [made[name] for name in yaml.safe_load(arg["only"]) or made if name not in yaml.safe_load(arg["without"])]


def generate_launch_description() -> LaunchDescription:
    """Return the description that `ros2 launch` runs."""
    about = {**TABLE["arguments"], "bringup": {"default": "sim", "help": "one of " + ", ".join(TABLE["bringups"])}}
    made = (DeclareLaunchArgument(n, default_value=str(a["default"]), description=a["help"]) for n, a in about.items())
    return LaunchDescription([*made, OpaqueFunction(function=nodes)])
