"""The table of what is started together, and the launch files that read it: as text, without `ros2 launch`."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from robot_rl.cell.cell_guards import guards_for
from robot_rl.config.nodes import NODE_CONFIGS, SafetyNodeConfig, SimNodeConfig
from robot_rl.errors import ConfigError, UnknownNameError
from ros_nodes.bringup.plan import plan
from ros_nodes.bringup.table import from_words, node_specs, read_table, table_folder

LAUNCH = Path(__file__).parents[3] / "launch"
TABLE = read_table()


def test_every_node_of_the_table_exists_and_declares_the_parameters_that_it_is_given():
    for name, entry in TABLE["nodes"].items():
        module = importlib.import_module(f"ros_nodes.nodes.{entry['executable']}")
        assert callable(module.main), name
        assert set(entry.get("parameters", {})) <= set(NODE_CONFIGS[entry["executable"]].__dataclass_fields__), name


def test_every_bringup_names_nodes_of_the_table_and_every_node_is_used():
    given = {"console": ":8480", "labels": "labels.yaml"}
    used = {spec.name for name in TABLE["bringups"] for spec in node_specs(TABLE, name, given)}
    assert used == set(TABLE["nodes"])


def test_with_the_console_a_person_leads_and_the_arm_holds_without_it():
    alone, led = (
        {spec.name: spec for spec in node_specs(TABLE, "train", given)} for given in ({}, {"console": ":8480"})
    )
    assert led.keys() - alone.keys() == {"console"}
    assert led["console"].parameters["address"] == ":8480"
    assert (alone["sim"].parameters["operator"], led["sim"].parameters["operator"]) == ("script", "person")
    required = [nodes["safety"].parameters["required_nodes"] for nodes in (alone, led)]
    assert required == [["sim_node", "teleop_node"], ["sim_node", "teleop_node", "console_node"]]


def test_arguments_take_their_places_and_keep_their_types():
    specs = {spec.name: spec for spec in node_specs(TABLE, "train", {"task": "reach", "settings": ["env_steps=5"]})}
    assert specs["sim"].parameters["task"] == "reach"
    assert specs["sim"].parameters["lockstep"] is False
    assert "cameras" not in specs["sim"].parameters  # a parameter file may name them
    assert specs["actor"].parameters["settings"] == ["task=reach", "seed=0", "device=cpu", "env_steps=5"]
    command = specs["sim"].command("left/arm")
    start = command.index("-m")
    assert command[start : start + 4] == ["-m", "ros_nodes.nodes.sim_node", "--ros-args", "-r"]
    assert "__ns:=/left/arm" in command
    assert 'task:="reach"' in command
    assert "lockstep:=false" in command


def test_a_list_is_given_word_by_word_or_as_for_ros2_launch():
    words = ["env_steps=5", "[seed=1, 'intervention={enabled: false}']", "calibrations=[wrist=w.yaml]"]
    entries = ["env_steps=5", "seed=1", "intervention={enabled: false}", "calibrations=[wrist=w.yaml]"]
    assert from_words("--settings", words) == entries
    with pytest.raises(ConfigError, match=r"--settings"):
        from_words("--settings", ["[seed=1"])


def test_unknown_bringups_and_arguments_are_named():
    with pytest.raises(
        UnknownNameError, match="valid: calibrate, calibrate_robot, demo, eval, practice, robot, sim, train"
    ):
        node_specs(TABLE, "trian", {})
    with pytest.raises(UnknownNameError, match=r"valid: .*task"):
        node_specs(TABLE, "train", {"taks": "reach"})
    with pytest.raises(UnknownNameError, match=r"unknown node of this bringup 'lerner'; valid: actor, learner, rec"):
        node_specs(TABLE, "train", {"only": ["lerner"]})


@pytest.mark.parametrize(
    ("bringup", "given", "complaint"),
    [
        ("train", {"unattended": True}, "--unattended: train makes no use of it, only practice; leave it out"),
        ("train", {"episodes": 50}, "--episodes: train makes no use of it, only demo, eval, robot; leave it out"),
        ("eval", {"settings": ["env_steps=5"]}, "--settings: eval makes no use of it, only train, practice, demo, rob"),
        ("practice", {"task": "relocate_forward", "demos": "demos"}, "--demos: practice makes no use of it, only"),
        ("robot", {"cameras": ["wrist"]}, "--cameras: robot makes no use of it, only sim, train, practice, demo, eval"),
        ("sim", {"namespace": "my-cell"}, "--namespace my-cell: 'my-cell' is no name of ROS; letters, digits and"),
        ("sim", {"namespace": "/cell/2nd"}, "--namespace /cell/2nd: '2nd' is no name of ROS"),
        ("sim", {"namespace": "cell//left"}, "--namespace cell//left: '' is no name of ROS"),
        ("sim", {"namespace": "my__cell"}, "--namespace my__cell: 'my__cell' is no name of ROS"),
    ],
)
def test_what_a_bringup_would_ignore_and_what_ros_would_end_its_nodes_for_is_refused(
    tmp_path, bringup, given, complaint
):
    with pytest.raises(ConfigError) as refusal:
        plan(bringup, given, tmp_path, flag="--")
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_is_used_by_a_node_that_may_be_there_is_not_refused_nor_are_the_defaults_of_a_launch_file(tmp_path):
    defaults = {name: entry["default"] for name, entry in TABLE["arguments"].items()}
    given = {"task": "relocate_forward", "namespace": "/cell/left_2/", "params": "", "out": "runs/one"}
    for bringup in sorted(set(TABLE["bringups"]) - {"calibrate", "calibrate_robot"}):  # which have no task
        assert plan(bringup, {**defaults, **given}, tmp_path)
    for name in ("calibrate", "calibrate_robot"):
        assert plan(name, {**defaults, "namespace": "cell"}, tmp_path)
    for given in ({"console": ":8480", "fleet": "f.yaml", "labels": "l.yaml"}, {"only": ["learner"], "device": "cuda"}):
        assert plan("train", given, tmp_path)


def test_a_bringup_may_be_divided_between_machines():
    whole = {spec.name: spec for spec in node_specs(TABLE, "train", {})}
    learner = node_specs(TABLE, "train", {"only": ["learner"]})
    others = node_specs(TABLE, "train", {"only": [name for name in whole if name != "learner"]})
    assert {spec.name: spec for spec in [*learner, *others]} == whole


def test_the_dds_profile_lies_beside_the_table():
    assert (table_folder() / "fastdds.xml").read_text().count("33554432") == 1


@pytest.mark.parametrize("path", sorted(LAUNCH.glob("*.py")), ids=lambda path: path.name)
def test_a_launch_file_is_short_compiles_and_defines_what_launch_looks_for(path):
    text = path.read_text()
    assert path.name.endswith(".launch.py")
    assert len(text.splitlines()) <= 40
    defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert "generate_launch_description" in defined


def test_every_bringup_has_a_launch_file_that_names_it():
    for name in TABLE["bringups"]:
        assert f'{{"bringup": "{name}"}}' in (LAUNCH / f"{name}.launch.py").read_text()


@pytest.mark.parametrize("bringup", TABLE["bringups"])
def test_what_is_left_out_because_it_is_empty_is_the_default_of_its_node(bringup):
    for spec in node_specs(TABLE, bringup, {}):
        defaults = NODE_CONFIGS[spec.executable]()
        for name in set(TABLE["nodes"][spec.name].get("parameters", {})) - set(spec.parameters):
            assert not getattr(defaults, name), (spec.name, name)


def launched(**given):
    """Return what the launch file of all bringups gives `launch_ros`: `launch` itself need not be installed."""
    tree = ast.parse((LAUNCH / "bringup.launch.py").read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)][:1]
    profile = {}
    names = {"json": json, "subprocess": subprocess, "executable": sys.executable, "CONFIG": table_folder()}
    names |= {
        "END": ((2,), (0, 2, 130, -2)),
        "Shutdown": lambda: "shutdown",
        "Node": lambda **kw: SimpleNamespace(**kw),
    }
    names |= {"FILES": SimpleNamespace(name=given.pop("files")), "LaunchContext": object, "Path": Path}
    exec(compile(ast.Module([function], []), "bringup.launch.py", "exec"), names)
    texts = {name: str(entry["default"]) for name, entry in TABLE["arguments"].items()} | {"not_ours": "1"} | given
    return {n.exec_name: n for n in names["nodes"](SimpleNamespace(environment=profile, launch_configurations=texts))}


def test_launch_files_and_robot_rl_up_make_the_same_of_the_table(tmp_path):
    texts = {"task": "reach", "lockstep": "true", "settings": "[env_steps=5]", "cameras": "[wrist]", "seed": "3"}
    texts |= {
        "calibrations": "[wrist=wrist.yaml]",
        "console": ":8480",
        "arms": "[left, right]",
        "without": "[recorder]",
    }
    nodes = launched(bringup="train", files=str(tmp_path), **texts)
    typed = {name: yaml.safe_load(value) for name, value in texts.items()}
    specs = {spec.name: spec for spec in plan("train", typed, tmp_path)}
    assert {name: node.ros_arguments for name, node in nodes.items()} == {
        name: spec.ros_arguments() for name, spec in specs.items()
    }
    assert {name: node.arguments[-1] for name, node in nodes.items()} == {
        name: f"ros_nodes.nodes.{spec.executable}" for name, spec in specs.items()
    }
    ends = {
        name: [c for c in (0, 1, 2) if node.on_exit(SimpleNamespace(returncode=c), None)]
        for name, node in nodes.items()
    }
    assert ends == {name: [0, 2] if spec.main else [2] for name, spec in specs.items()}


def test_a_bringup_begins_without_a_latched_stop_and_its_safety_node_keeps_one(tmp_path):
    (tmp_path / "latched_stop").write_text("of the bringup before")
    (safety,) = [spec for spec in plan("sim", {"task": "reach"}, tmp_path) if spec.name == "safety"]
    kept = Path(safety.parameters["latch_file"])
    assert kept.parent == tmp_path
    assert not kept.exists()


def test_with_either_the_safety_node_knows_the_arms_and_keep_out_of_a_simulated_task(tmp_path):
    node = launched(bringup="sim", task="handover", files=str(tmp_path))["safety"]
    (safety,) = [spec for spec in plan("sim", {"task": "handover"}, tmp_path) if spec.name == "safety"]
    assert node.ros_arguments == safety.ros_arguments()
    config = SafetyNodeConfig(task_file=safety.parameters["task_file"])
    guards = guards_for(config, config.arms, config.task_file, config.arm_limits)
    assert guards.arms == ("left", "right")
    assert guards.kept_apart


def test_with_either_the_longer_steps_of_a_simulated_task_are_let_through(tmp_path):
    nodes = launched(bringup="sim", task="whip", files=str(tmp_path))
    specs = {spec.name: spec for spec in plan("sim", {"task": "whip"}, tmp_path)}
    usual = {spec.name: spec for spec in plan("sim", {"task": "reach"}, tmp_path)}
    for name, config in (("safety", SafetyNodeConfig), ("sim", SimNodeConfig)):
        assert nodes[name].ros_arguments == specs[name].ros_arguments()
        more = specs[name].parameters.keys() - usual[name].parameters.keys()
        assert all(specs[name].parameters[key] > getattr(config(), key) for key in more)
        assert (
            more
            == {
                "safety": {"max_speed", "max_turn_rate", "max_acceleration", "max_turn_acceleration"},
                "sim": {"cap_lead", "cap_turn", "cap_speed", "cap_turn_rate"},
            }[name]
        )


def test_limits_in_a_parameter_file_are_left_to_it(tmp_path):
    file = tmp_path / "params.yaml"
    file.write_text("safety_node: {ros__parameters: {max_speed: 0.1}}")
    (safety,) = [s for s in plan("sim", {"task": "whip", "params": str(file)}, tmp_path) if s.name == "safety"]
    assert not {"max_speed", "max_acceleration"} & safety.parameters.keys()


def test_a_launch_file_refuses_what_robot_rl_up_refuses(tmp_path):
    for given, words in (
        ({"without": "[lerner]"}, "unknown node of this bringup 'lerner'"),
        ({"seed": "three"}, "seed has to be a whole number, got 'three'"),
        ({"only": "[learner"}, "only: is not YAML"),
        ({"lockstep": "1"}, "lockstep has to be true or false, got '1'"),
        ({"params": "missing.yaml"}, "params missing.yaml: there is no such file"),
    ):
        with pytest.raises(RuntimeError, match=words):
            launched(bringup="train", files=str(tmp_path), **given)


def test_the_launch_file_of_a_robot_makes_of_a_robot_file_what_robot_rl_up_makes(tmp_path):
    """Its function is run on its own, as `launch` need not be installed: with a cell that has no cameras."""
    tree = ast.parse((LAUNCH / "robot.launch.py").read_text())
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "read_robot_file"]
    cell = SimpleNamespace(name=str(tmp_path))
    scope = {
        "yaml": yaml,
        "subprocess": subprocess,
        "executable": sys.executable,
        "CELL": cell,
        "LaunchContext": object,
    }
    exec(compile(ast.Module([function], []), "robot.launch.py", "exec"), scope)
    page = (LAUNCH.parent / "docs" / "tutorials" / "own_arm.md").read_text(encoding="utf-8")
    (tmp_path / "robot.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])

    def read(**given):
        context = SimpleNamespace(launch_configurations={"robot_file": str(tmp_path / "robot.yaml")} | given)
        scope["read_robot_file"](context)
        return context.launch_configurations

    texts = read(task="touch", without="[recorder]")
    assert texts["driver"] == "standin" and "goal" in Path(texts["params"]).read_text()
    given = {key: texts[key] for key in ("params", "task_file", "driver")} | {"without": ["recorder", "cell_cameras"]}
    assert yaml.safe_load(texts["without"]) == given["without"]
    names = {spec.name for spec in node_specs(TABLE, "robot", given)}
    assert names == {"cell", "cell_task", "cell_safety", "teleop", "learner", "cell_actor"}
    with pytest.raises(RuntimeError, match="robot_file says what driver says, too"):
        read(driver="ur")
    with pytest.raises(RuntimeError, match=r"^cannot read robot file missing\.yaml.*$"):
        read(robot_file="missing.yaml")


def test_every_node_has_a_script_for_ros2_run():
    nodes = {path.stem for path in (LAUNCH.parent / "ros_nodes" / "nodes").glob("*_node.py")}
    scripts = {path.name: path for path in (LAUNCH.parent / "scripts" / "nodes").iterdir()}
    assert scripts.keys() == nodes
    for name, path in scripts.items():
        assert path.stat().st_mode & 0o111, f"{path} has to be executable"
        assert f"from ros_nodes.nodes.{name} import main" in path.read_text()
