"""Examples in documents: read from the page, written to a folder, installed as a plug-in, and run.

A page `docs/add/*.md` is written like this:

- A fenced block of `python`, `yaml` or `toml` whose first line is `# name.ext` is the file `name.ext`. A second block
  with the same first line continues that file. Python blocks without a name are `example.py`.
- The table `[project.entry-points."robot_rl.xyz"]` of a block named `# pyproject.toml` is installed for the run,
  without pip: `robot-rl` and `robot_rl` then find the plug-in by its name.
- Each line of a fenced block of `bash` that starts with `robot-rl` or `python` is run in that folder, in order,
  and has to exit with 0: as a program of its own where it has to find entry points. `pip install` lines are shown to
  readers and not run. A page without such a line has its `example.py` run.
- All named files but `pyproject.toml` have at most 60 lines together, blank ones not counted; a peer, a file
  `*_peer.py` that stands in for hardware, is counted by itself and has at most 60, too.

`tests/docs/test_add_pages.py` runs every page. A conformance test takes the class of a page with

    from documents import ADD, Example

    def test_the_arm_of_the_page_keeps_the_contract(tmp_path, monkeypatch):
        module = Example.read(ADD / "arm.md").load("my_arm", tmp_path, monkeypatch)
        check_contract(module.MyArm())
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from packages import install_package
from running import robot_rl

ROOT = Path(__file__).resolve().parents[2]
ADD = ROOT / "docs" / "add"
MAX_LINES = 60
PEER = "_peer.py"
"""How the name of a file ends that stands in for hardware."""
TIMEOUT = 240
"""Of one command of a page [s]."""
QUICK = "--set update_to_data=1 --set replay.batch_size=16 --set sac.hidden_sizes=[16,16]"
"""Flags of a training that learns nothing, and does nothing that takes long; the last value of a setting counts."""
UNSEEN = "--set evaluation.curve_interval=0 --set evaluation.video_episodes=0"
"""And of one that draws no curve on its way and films nothing."""

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"#\s*([\w./-]+\.(?:py|ya?ml|toml))\s*$")


@dataclass
class Example:
    """The files and commands of a page."""

    page: Path
    files: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, page: Path) -> Example:
        """The example of a page."""
        example = cls(page)
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language in ("python", "yaml", "toml"):
                first, _, rest = text.partition("\n")
                named = NAME.match(first)
                if named:
                    example.files[named[1]] = example.files.get(named[1], "") + rest
                elif language == "python":
                    example.files["example.py"] = example.files.get("example.py", "") + text
            elif language in ("bash", "sh", "shell", "console"):
                joined = text.replace("\\\n", " ")
                lines = [line.removeprefix("$ ").strip() for line in joined.splitlines()]
                example.commands += [line for line in lines if line.startswith(("robot-rl ", "python "))]
        return example

    @property
    def lines(self) -> int:
        """Lines of what a user programs that are not blank."""
        return sum(count for name, count in self._counts() if not name.endswith((PEER, "pyproject.toml")))

    @property
    def peer_lines(self) -> int:
        """Those of its peer."""
        return sum(count for name, count in self._counts() if name.endswith(PEER))

    def _counts(self) -> Iterator[tuple[str, int]]:
        for name, text in self.files.items():
            yield name, sum(bool(line.strip()) for line in text.splitlines())

    def shorten_trainings(self, flags: str) -> None:
        """Add flags to each training."""
        self.commands = [f"{line} {flags}" if line.startswith("robot-rl train ") else line for line in self.commands]

    @property
    def entry_points(self) -> dict[str, dict[str, str]]:
        """Those of its package, by group."""
        project = tomllib.loads(self.files.get("pyproject.toml", "")).get("project", {})
        return project.get("entry-points", {})

    def install(self, folder: Path) -> None:
        """Write the files; entry points are found by whoever has the folder on `sys.path`."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        install_package(folder, f"{self.page.stem}_example", self.entry_points)

    def run(self, folder: Path) -> list[subprocess.CompletedProcess[str]]:
        """Install the example and run its commands; the last one is the first that fails, if any does."""
        self.install(folder)
        path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "PATH": programs, "OMP_NUM_THREADS": "1"}
        done = []
        for line in self.commands or ["python example.py"]:
            if done and done[-1].returncode:
                break
            command = shlex.split(line, comments=True)
            if command[0] == "robot-rl" and not self.entry_points:
                done.append(robot_rl(*command[1:], cwd=folder))
                continue
            program = str(Path(sys.executable).with_name(command[0]))
            options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": TIMEOUT}
            done.append(subprocess.run([program, *command[1:]], check=False, **options))
        return done

    def load(self, module: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        """Install the example and import one of its modules into this process, for the time of a test."""
        self.install(folder)
        monkeypatch.syspath_prepend(str(folder))
        loaded = importlib.import_module(module)
        del sys.modules[module]
        monkeypatch.setitem(sys.modules, module, loaded)  # so that it is taken out again when the test ends
        return loaded
