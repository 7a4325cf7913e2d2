"""Plug-ins without cameras, the task `blind` and the environment `dot` (of no robot)."""

from pathlib import Path

import pytest
from documents import ADD, Example
from packages import install_package

BLIND = """
from fakes import fake_workcell


def make(options):
    del options
    return fake_workcell()
"""


def install_blind_plugins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes the plug-ins into a folder, where this process finds them for the time of a test."""
    Example.read(ADD / "environment.md").install(folder)
    (folder / "blind.py").write_text(BLIND)
    install_package(folder, "blind", {"robot_rl.tasks": {"blind": "blind:make"}})
    monkeypatch.syspath_prepend(str(folder))
