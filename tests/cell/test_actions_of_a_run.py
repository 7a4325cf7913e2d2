"""A run keeps what its actions move: its policy is not played or continued where they move otherwise."""

import pytest
from judged_arm import GOAL, judged_arm
from running import SMALL

from robot_rl.cli.main import main
from robot_rl.run.directory.run_directory import RunDirectory

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]
ACTIONS = "x 0.01 m, y 0.01 m, z 0.01 m, every 0.1 s"
FEW = [*SMALL, "--steps", "12", "--episodes", "1", "--set", "demonstrations=1"]
OTHERWISE = {
    "permuted": ({"action_axes": ["y", "x", "z"]}, "y 0.01 m, x 0.01 m, z 0.01 m, every 0.1 s"),
    "fewer": ({"action_axes": ["x", "y"]}, "x 0.01 m, y 0.01 m, every 0.1 s"),
    "slower": ({"control_period": 0.2}, "x 0.01 m, y 0.01 m, z 0.01 m, every 0.2 s"),
    "longer": ({"action_translation": 0.015}, "x 0.015 m, y 0.015 m, z 0.015 m, every 0.1 s"),
}


def robot(folder, name, **task):
    text = judged_arm(cell={"judge": "goal"}, goal=GOAL, task={"max_steps": 8, **task})
    (folder / f"{name}.yaml").write_text(text)
    return str(folder / f"{name}.yaml")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acts")
    same = robot(folder, "robot", max_steps=9)
    assert main(["train", "touch", "--robot", same, "--out", str(folder / "run"), *FEW]) == 0
    return folder / "run"


def test_what_it_moves_is_recorded_and_may_be_played_there(run):
    assert RunDirectory.read_facts(run)["actions"] == ACTIONS
    assert main(["eval", str(run), "--robot", robot(run.parent, "same"), "--episodes", "1"]) == 0


@pytest.mark.parametrize("name", OTHERWISE)
def test_where_it_moves_otherwise_it_is_refused(run, tmp_path, capsys, name):
    changes, here = OTHERWISE[name]
    other, before = robot(tmp_path, name, **changes), (run / "provenance.json").read_text()
    calls = {
        ("eval", str(run), "--episodes", "1"): f"an action of its policy is {ACTIONS}, and one of touch is {here} here",
        ("train", "--resume", "--out", str(run), "--steps", "20"): "axes, steps and period of the task as they were",
        ("train", "touch", *FEW, "--demos", str(run / "episodes"), "--out", str(tmp_path / "new")): (
            f"episodes: demonstration-0000: its action is {ACTIONS}, and one of touch is {here} here"
        ),
    }
    for call, named in calls.items():
        assert main([*call, "--robot", other]) == 1
        assert named in capsys.readouterr().err
    assert (run / "provenance.json").read_text() == before
    assert not (tmp_path / "new").exists()
