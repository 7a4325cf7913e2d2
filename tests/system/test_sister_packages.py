"""Packages of other projects that are called like ours are seen before an import; with real wheels too."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from robot_rl.system.process import python_module
from robot_rl.system.sister_packages import MARK, SISTER_PACKAGES, check_sister

ROOT = Path(__file__).resolve().parents[2]


def foreign(folder, name):
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("SPEED = 3\n")
    return folder


def call(*arguments, python=sys.executable, cwd="/", **variables):
    environment = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **variables}
    command = [python, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("package", SISTER_PACKAGES)
def test_each_of_ours_is_marked_and_passes(package):
    assert MARK in (ROOT / package / "__init__.py").read_text().splitlines()
    check_sister(f"{package}.anything:make")


def test_packages_of_other_names_are_not_looked_at():
    check_sister("no_such_package.tasks:make")


@pytest.mark.parametrize("as_file", [False, True])
def test_another_sim_before_ours_is_one_line_with_both_paths_and_the_cure(tmp_path, as_file):
    if as_file:
        (tmp_path / "sim.py").write_text("SPEED = 3\n")
    else:
        foreign(tmp_path, "sim")
    answer = call("-m", "robot_rl", "bench", "env", PYTHONPATH=str(tmp_path))
    assert (answer.returncode, answer.stderr.count("\n")) == (1, 1)
    for part in (str(tmp_path / "sim"), str(ROOT / "sim"), f"take {tmp_path} out of PYTHONPATH"):
        assert part in answer.stderr


def test_another_calibration_breaks_only_what_needs_it(tmp_path):
    foreign(tmp_path, "calibration")
    variables = {"PYTHONPATH": str(tmp_path)}
    broken = call("-m", "robot_rl", "calibrate", "camera", "--anything", **variables)
    assert broken.returncode == 1
    assert f"'calibration' is imported from {tmp_path / 'calibration'}" in broken.stderr
    assert "Traceback" not in broken.stderr
    assert call("-m", "robot_rl", "train", "--list-settings", **variables).returncode == 0
    reads_results = call("-m", "robot_rl", "bench", "env", **variables)
    assert "'calibration' is imported from" in reads_results.stderr


def test_tasks_warns_of_one_that_ours_hides(tmp_path):
    foreign(tmp_path, "sim")
    code = f"import sys; sys.path.append({str(tmp_path)!r}); from robot_rl.cli.main import main; main(['tasks'])"
    answer = call("-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}", cwd="/")
    assert f"{tmp_path / 'sim'} has that name too" in answer.stderr
    assert "peg_insert" in answer.stdout


def test_a_child_does_not_search_the_folder_it_is_started_in(tmp_path, monkeypatch):
    """A learner or a node that is started from a folder with a `robot_rl` of its own is that of its parent."""
    foreign(tmp_path, "robot_rl")
    monkeypatch.chdir(tmp_path)
    child = subprocess.run(
        [*python_module("robot_rl"), "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert child.stdout.startswith("robot-rl "), child.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "-P" not in python_module("robot_rl")


# ------------------------------------------------------------- wheels


def wheel(folder, distribution, package, **modules):
    """Return a wheel with one package, as any project would have it."""
    path = folder / f"{distribution}-1.0-py3-none-any.whl"
    files = {f"{package}/{name}.py": text for name, text in modules.items()}
    files[f"{distribution}-1.0.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{distribution}-1.0.dist-info/WHEEL"] = tag
    record = f"{distribution}-1.0.dist-info/RECORD"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in (*files, record)))
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Our own wheel, built as pip does it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    made = call("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source))
    assert made.returncode == 0, made.stderr
    (path,) = folder.glob("*.whl")
    return path


class Environment:
    """A virtual environment that borrows everything but robot_rl from the one that runs the tests."""

    def __init__(self, folder):
        assert call("-m", "venv", "--without-pip", str(folder)).returncode == 0
        self.python = folder / "bin" / "python"
        (self.packages,) = folder.glob("lib/python*/site-packages")
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, path):
        flags = ("-q", "--no-deps", "--ignore-installed", "--no-compile")  # most of it is never imported
        done = call("-m", "pip", "--python", str(self.python), "install", *flags, path)
        assert done.returncode == 0, done.stderr

    def robot_rl(self, *arguments):
        return call(self.python.parent / "robot-rl", *arguments, python=self.python)


@pytest.mark.slow
def test_a_wheel_that_overwrites_ours_is_named(built, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.install(built)
    assert "warning" not in environment.robot_rl("tasks").stderr
    environment.install(wheel(tmp_path, "traffic", "sim", __init__="SPEED = 3\n", cars="LENGTH = 4\n"))
    refused = environment.robot_rl("bench", "env")
    assert refused.returncode == 1
    init = environment.packages / "sim" / "__init__.py"
    assert refused.stderr.startswith(f"robot-rl: {init} was overwritten by traffic")
    assert refused.stderr.count("\n") == 1
    assert environment.robot_rl("train", "--list-settings").returncode == 0


@pytest.mark.slow
def test_a_wheel_that_ours_overwrites_is_named(built, tmp_path):
    environment = Environment(tmp_path / "venv")
    environment.install(wheel(tmp_path, "traffic", "sim", __init__="SPEED = 3\n", cars="LENGTH = 4\n"))
    environment.install(built)
    answer = environment.robot_rl("tasks")
    assert "traffic installs a package 'sim' too" in answer.stderr
    assert "peg_insert" in answer.stdout
