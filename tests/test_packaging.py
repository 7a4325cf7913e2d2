"""What a ROS 2 workspace needs is there and agrees with the rest."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from robot_rl import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGE = ElementTree.parse(ROOT / "package.xml").getroot()


def test_package_xml_says_the_same_as_the_project():
    assert PACKAGE.get("format") == "3"
    assert PACKAGE.findtext("name") == "robot_rl"
    assert PACKAGE.findtext("version") == __version__
    assert PACKAGE.findtext("export/build_type") == "ament_python"
    assert PACKAGE.findtext("description") == PROJECT["description"]


def test_every_ros_package_that_is_imported_is_a_dependency():
    imported = set()
    for path in (ROOT / "ros_nodes").rglob("*.py"):
        imported |= set(
            re.findall(r"^\s*(?:from|import) (\w+(?:_msgs|_srvs|_interfaces)|rclpy)", path.read_text(), re.M)
        )
    named = {element.text for element in PACKAGE.iter("exec_depend")}
    assert imported <= named


NODES = {path.stem for path in (ROOT / "ros_nodes" / "nodes").glob("*_node.py")}


def test_every_node_has_a_program_for_ros2_run():
    programs = list((ROOT / "scripts" / "nodes").iterdir())
    assert {path.name for path in programs} == NODES
    for path in programs:
        assert f"from ros_nodes.nodes.{path.name} import main" in path.read_text()
        assert os.access(path, os.X_OK)


def test_the_resource_marker_is_there():
    assert (ROOT / "resource" / "robot_rl").is_file()


@pytest.mark.slow
def test_colcon_builds_a_workspace_that_has_all_that_is_launched(tmp_path):
    source = tmp_path / "src" / "robot_rl"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    build = subprocess.run(
        [Path(sys.executable).parent / "colcon", "build"], cwd=tmp_path, capture_output=True, text=True
    )
    assert build.returncode == 0, build.stderr
    installed = tmp_path / "install" / "robot_rl"
    assert {path.name for path in (installed / "lib" / "robot_rl").iterdir()} == NODES
    assert (installed / "share" / "ament_index" / "resource_index" / "packages" / "robot_rl").is_file()
    launched = {path.name for path in (installed / "share" / "robot_rl" / "launch").glob("*.launch.py")}
    assert launched == {path.name for path in (ROOT / "launch").glob("*.launch.py")} != set()
    where = "import robot_rl, ros_nodes, sim; print(robot_rl.__file__)"
    shell = f". install/setup.sh; cd /; robot-rl tasks; {sys.executable} -c '{where}'"
    used = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert used.stdout.splitlines()[-1].startswith(str(installed)), used.stderr
    assert "peg_insert" in used.stdout


def test_without_the_simulator_the_error_names_the_extra(tmp_path):
    """And everything that needs no simulated arm works."""
    (tmp_path / "mujoco.py").write_text("raise ModuleNotFoundError(\"No module named 'mujoco'\", name='mujoco')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def robot_rl(*arguments):
        command = [sys.executable, "-m", "robot_rl", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    refused = robot_rl("demo", "reach", "--out", str(tmp_path / "demos"))
    assert refused.returncode == 1
    assert "install it: pip install 'robot_rl[sim]'" in refused.stderr
    assert not (tmp_path / "demos").exists()
    assert robot_rl("train", "--list-settings").returncode == 0
    listed = robot_rl("tasks")
    assert (listed.returncode, listed.stdout.count("any environment of")) == (0, 3)
    simulated = [place for place in PROJECT["entry-points"]["robot_rl.tasks"].values() if place.startswith("sim.")]
    assert listed.stderr.count("pip install 'robot_rl[sim]'") == len(simulated) > 0
