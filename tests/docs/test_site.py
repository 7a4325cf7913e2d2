"""The documentation site: it builds without warnings or network, and answers a newcomer in two clicks."""

import posixpath
import re
import subprocess
import sys

import pytest
from documents import ROOT

pytest.importorskip("material", reason="needs mkdocs-material: pip install 'robot_rl[docs]'")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The text of each page of the built site, by its path."""
    site = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def clicks(page, text):
    """Where the links of the article of a page lead; the menu at its side does not count."""
    article = text.partition("<article")[2].partition("</article>")[0]
    for link in re.findall(r'<a[^>]* href="([^"]+)"', article):
        if "://" not in link and not link.startswith("#"):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


@pytest.mark.slow
def test_the_site_is_made_of_the_program_and_loads_nothing_from_elsewhere(pages):
    assert all(f"robot-rl {name}" in pages["reference/commands.html"] for name in ("train", "data verify", "up"))
    assert "sac.discount" in pages["reference/settings.html"]
    contracts = ("RobotIO", "RobotState", "Task", "Environment", "ArmDriver", "Algorithm", "BasePolicy", "Episode")
    assert [
        name for name in contracts if not re.search(rf'id="[\w.]+\.{name}"', pages["reference/contracts.html"])
    ] == []
    for name, text in pages.items():
        assert re.findall(r'<(?:script|img|link)[^>]* (?:src|href)="(https?://[^"]+)"', text) == [], name


@pytest.mark.slow
def test_each_question_of_the_first_day_is_answered_in_two_clicks(pages):
    rows = re.findall(r"<tr>\s*<td>([^<]+\?[^<]*)</td>\s*<td>(.*?)</td>", pages["questions.html"], re.DOTALL)
    assert len(rows) >= 20
    first = set(clicks("index.html", pages["index.html"]))
    assert "questions.html" in first
    for question, answer in rows:
        targets = re.findall(r'href="([^"]+)"', answer)
        assert targets, question
        for target in targets:
            page, _, anchor = target.partition("#")
            assert page in pages, question
            assert not anchor or f'id="{anchor}"' in pages[page], f"{question}: {target}"
