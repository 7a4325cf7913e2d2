"""The documentation site: it builds without warnings, its links lead somewhere, and it loads nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="needs mkdocs-material: pip install 'robot_rl[docs]'")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix(): path for path in (tmp_path / "site").rglob("*.html")}
    commands = pages["reference/commands.html"].read_text(encoding="utf-8")
    assert all(name in commands for name in ("robot-rl train", "robot-rl data verify", "robot-rl up"))
    assert "sac.discount" in pages["reference/settings.html"].read_text(encoding="utf-8")
    assert "RobotState" in pages["reference/contracts.html"].read_text(encoding="utf-8")
    for name, path in pages.items():
        loaded = re.findall(
            r'<(?:script|img|link)[^>]* (?:src|href)="(https?://[^"]+)"', path.read_text(encoding="utf-8")
        )
        assert loaded == [], name


def test_each_question_of_the_first_day_has_an_answer():
    rows = re.findall(r"^\| ([^|]+\?[^|]*) \| (.+) \|$", (ROOT / "docs" / "questions.md").read_text(), re.MULTILINE)
    assert len(rows) >= 20
    assert all(re.search(r"\]\(|`", answer) for _, answer in rows)
