"""Plug-ins without cameras, the task `blind` and the environment `dot` (of no robot)."""

from pathlib import Path

import pytest
from documents import ADD, Example

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
    info = folder / "blind-0.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blind\nVersion: 0.0.0\n")
    (info / "entry_points.txt").write_text("[robot_rl.tasks]\nblind = blind:make\n")
    monkeypatch.syspath_prepend(str(folder))
