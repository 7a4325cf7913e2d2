"""What people read has no Python in it, and settings are shown as they are typed."""

import re

import pytest
import yaml
from running import SMALL

from robot_rl.cli.main import main
from robot_rl.cli.parts.command import flat_lines
from robot_rl.config.describe import list_keys

PYTHON = re.compile(r"\b(None|True|False|nan|dict)\b|[{}]|(?<![\w/])\(\)")


def test_values_are_written_for_people():
    answer = {"a": None, "b": True, "c": False, "d": float("nan"), "e": [0.123456, None], "f": {}, "g": {"h": ()}}
    lines = ["a: not known", "b: yes", "c: no", "d: not known", "e: 0.1235, not known", "f: none", "g.h: none"]
    assert flat_lines(answer) == lines


@pytest.mark.parametrize("described", list_keys(), ids=lambda one: one.key)
def test_a_default_is_shown_as_it_is_typed(described):
    shown = described.text().partition("\n")[0].partition(" = ")[2].partition("  (")[0]
    default = described.default
    assert not PYTHON.search(shown) or isinstance(default, dict), "a schedule is typed with braces"
    value = yaml.safe_load(shown)
    assert value == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.slow
def test_no_answer_shows_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "reach", "--out", "run", *SMALL]) == 0
    for line in ("eval run --episodes 1", "inspect run", "inspect run/episodes", "data info run", "data ls run"):
        main(line.split())
    printed = capsys.readouterr().out
    assert "finished: yes" in printed
    assert not PYTHON.findall(printed), printed
