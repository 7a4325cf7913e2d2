"""Tutorials: the code of a page and the cells of a notebook run, the latter with fewer steps."""

from pathlib import Path

import nbformat
import pytest
from browser import Person, answer, chromium, job
from document_code import commands, lines
from documents import QUICK, ROOT, Example
from nbclient import NotebookClient
from running import robot_rl

TUTORIALS = ROOT / "docs" / "tutorials"


@pytest.mark.slow
def test_an_environment_in_30_lines_is_learned(tmp_path):
    example = Example.read(TUTORIALS / "own_environment.md")
    assert example.lines <= 30
    for long, short in (("--steps 2000", "--steps 60"), ("--episodes 20", "--episodes 2")):
        example.commands = [line.replace(long, short) for line in example.commands]
    example.shorten_trainings(f"{QUICK} --set warmup_steps=20 --episodes 1 --set evaluation.curve_episodes=1")
    done = example.run(tmp_path)
    assert done[-1].returncode == 0, done[-1].stderr
    assert len(done) == 3
    assert "2 held-out resets of gym:dot:Dot-v0" in done[-1].stdout
    assert "force" not in done[-1].stdout, "there is no sensor of one"


@pytest.mark.slow
def test_a_task_in_60_lines_is_demonstrated_and_trained(tmp_path):
    example = Example.read(TUTORIALS / "own_task.md")
    assert example.lines <= 60
    assert robot_rl(*example.commands.pop(0).split()[1:], cwd=tmp_path).returncode == 0
    folder = tmp_path / "press"
    for name, text in example.files.items():
        assert (folder / name).read_text(encoding="utf-8") == text, "the page shows another file than is written"
    shorter = (("--episodes 10", "--episodes 2"), ("--steps 1500 --episodes 20", "--steps 40 --episodes 1"))
    for long, short in shorter:
        example.commands = [line.replace(long, short) for line in example.commands]
    example.shorten_trainings(f"{QUICK} --set warmup_steps=20 --set evaluation.curve_interval=0")
    done = example.run(folder)
    assert done[-1].returncode == 0, done[-1].stderr
    assert len(done) == 5
    assert "success_rate: 1" in done[1].stdout, "the operator and the task do not agree"
    assert (folder / "runs" / "press" / "evaluation.mp4").is_file()


@pytest.mark.slow
def test_the_stand_in_for_an_arm_is_commissioned_trained_and_evaluated(tmp_path):
    example = Example.read(TUTORIALS / "own_arm.md")
    short = "--steps 15 --episodes 1 --set demonstrations=1 --set evaluation.curve_interval=0"
    example.commands = [
        "robot-rl commission robot.yaml",
        *(line.replace("--steps 1200 --episodes 10 --set demonstrations=5", short) for line in example.commands),
    ]
    example.commands[-1] = example.commands[-1].replace("--episodes 5", "--episodes 1")
    example.shorten_trainings(QUICK)
    done = example.run(tmp_path)
    assert done[-1].returncode == 0, done[-1].stderr
    assert len(done) == 4
    assert "nothing moves without --move" in done[0].stdout
    assert "held-out resets of touch" in done[-1].stdout


@pytest.mark.slow
def test_demonstrations_in_the_browser_are_trained_from(tmp_path, monkeypatch):
    """The commands of the page in their order, and its keys pressed in a real browser."""
    monkeypatch.chdir(tmp_path)
    page_text = (TUTORIALS / "own_demonstrations.md").read_text(encoding="utf-8")
    shown = [words[1:] for line in lines(page_text) for words in commands(line) if words[0] == "robot-rl"]
    assert [words[0] for words in shown] == ["demo", "data", "data", "train"]
    shorter = {"--console": ("--console", "127.0.0.1:0", "--heartbeat", "5"), "5": ("1",), "1500": ("30",)}
    demo, info, ls, train = ([part for word in words for part in shorter.get(word, (word,))] for words in shown)
    with chromium() as page, job(*demo, "--json") as (process, url):
        person = Person(page, url)
        person.press("t")
        person.until_button("start")
        person.press("Enter")
        page.wait_for_selector("text=Recording starts when you move")
        with person.holding("w"):
            person.until_moved(6)
        person.press("y")
        person.until_title("Complete")
        person.press("Enter")
        assert answer(process)["episodes"] == 1
    assert Path("mine/coverage.png").is_file()
    for command in (info, ls, [*train, "--episodes", "1", "--set", "evaluation.curve_interval=0"]):
        done = robot_rl(*command)
        assert done.returncode == 0, done.stderr
    assert Path("runs/mine/summary.json").is_file()


@pytest.mark.slow
def test_the_notebook_runs_from_the_settings_to_the_learning_curve(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(TUTORIALS / "first_training.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    for cell in notebook.cells:
        short = cell.source.replace("STEPS = 1_500", "STEPS = 60")
        cell.source = short.replace("demonstrations=5", "demonstrations=1")
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in notebook.cells for out in cell.get("outputs", ()) for kind in out.get("data", {})}
    assert "image/png" in kinds
    assert (tmp_path / "runs" / "first" / "summary.json").is_file()
