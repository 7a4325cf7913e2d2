"""What the documents say exists: commands, flags, settings, linked files."""

import functools
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from robot_rl.config.components import TrainConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.labelling import LabelConfig

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
GROUPS = ("base", "bench", "data", "label", "calibrate", "classifier", "operator")
RENAMED = {"reward"}
"""Groups of commands that have another name now."""
ROBOT_RL = Path(sys.executable).with_name("robot-rl")


def code_lines(text: str) -> list[str]:
    """Lines of fenced and indented blocks, and spans of code."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^    (\S.*)$", rest, re.MULTILINE)
    return [line for block in fenced for line in block.splitlines()] + indented + re.findall(r"`([^`\n]+)`", rest)


def robot_rl_calls(text: str) -> list[list[str]]:
    calls = [line.partition("#")[0].split() for line in code_lines(text)]
    return [call[1:] for call in calls if len(call) > 1 and call[0].endswith("robot-rl")]


@functools.cache
def help_of(*command: str) -> str:
    done = subprocess.run([str(ROBOT_RL), *command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"robot-rl {' '.join(command)} does not exist: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    calls = [line.split("#")[0].split() for line in code_lines(path.read_text(encoding="utf-8"))]
    named = {word for call in calls if call[:1] == ["make"] for word in call[1:] if re.fullmatch(r"[a-z-]+", word)}
    assert named <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_flags_and_settings_exist(path):
    keys = {described.key for config in (TrainConfig, LabelConfig) for described in list_keys(config)}
    for call in robot_rl_calls(path.read_text(encoding="utf-8")):
        if not re.fullmatch(r"[a-z]+", call[0]):
            continue  # `robot-rl --help`, or a list of commands such as `robot-rl tasks | demo`
        if path.name == "CHANGELOG.md" and call[0] in RENAMED:
            continue  # what was before
        shown = help_of(*call[: 2 if call[0] in GROUPS else 1])
        flags = {word.partition("=")[0] for word in call if word.startswith("--")}
        assert {flag for flag in flags if not re.search(rf"{flag}\b", shown)} == set(), f"robot-rl {' '.join(call)}"
        settings = {
            word.partition("=")[0] for flag, word in itertools.pairwise(call) if flag == "--set" and "=" in word
        }
        assert settings <= keys, f"robot-rl {' '.join(call)}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_linked_files_exist(path):
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert missing == []


def test_commands_are_found_in_text():
    text = "Say `robot-rl tasks`, or\n\n    robot-rl train --seed 1  # a run\n\n```bash\nrobot-rl eval runs/a\n```\n"
    assert robot_rl_calls(text) == [["eval", "runs/a"], ["train", "--seed", "1"], ["tasks"]]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_named_tests_exist(path):
    for file, _, name in re.findall(r"`(tests/[\w/]+\.py)(::(test_\w+))?`", path.read_text(encoding="utf-8")):
        assert (ROOT / file).is_file(), file
        assert not name or re.search(rf"def {name}\b", (ROOT / file).read_text(encoding="utf-8")), f"{file}::{name}"
