"""The files of a practice survive a kill in the middle of a line, and what is not theirs is refused."""

import pytest

from robot_rl.cli.main import main
from robot_rl.errors import RunDirectoryError
from robot_rl.practice.files import PracticeFiles, PracticePlan, PracticeState


def test_half_a_line_takes_no_other_with_it(tmp_path):
    files = PracticeFiles.create(tmp_path / "practice", PracticePlan(("there", "back")), {})
    rows = [{"task": "there", "steps": number} for number in range(4)]
    for row in rows[:2]:
        files.record(row)
    with (files.path / "episodes.jsonl").open("a") as file:
        file.write('{"task": "ba')
    for row in rows[2:]:
        files.record(row)
    assert files.episodes() == rows


def test_one_that_was_killed_before_its_first_training_is_begun_anew(tmp_path, capsys):
    path, plan = tmp_path / "practice", PracticePlan(("there", "back"))
    PracticeFiles.create(path, plan, {})
    assert main(["practice", "--resume", "--out", str(path)]) != 0
    assert "ended before its first training began; begin it without --resume" in capsys.readouterr().err
    (path / "there").mkdir()  # a run that was not finished being made
    PracticeFiles.create(path, plan, {})
    (path / "there" / "provenance.json").write_text("{}")
    with pytest.raises(RunDirectoryError, match="already holds a practice"):
        PracticeFiles.create(path, plan, {})


def test_the_state_is_what_was_saved_and_that_of_another_program_is_refused(tmp_path):
    files = PracticeFiles.create(tmp_path / "practice", PracticePlan(("there", "back"), unattended=True), {})
    assert PracticeFiles.read_plan(files.path) == PracticePlan(("there", "back"), unattended=True)
    assert files.state() == PracticeState()
    saved = PracticeState("back", "there", [0.5, 1.0], 3.0, 4.0, 1, 2)
    files.save(saved)
    assert files.state() == saved
    for text in ('{"half', '{"unknown": 1}', "[]"):
        (files.path / "turn.json").write_text(text)
        with pytest.raises(RunDirectoryError, match=r"turn\.json"):
            files.state()
    (files.path / "practice.json").write_text('{"format": 2, "tasks": []}')
    with pytest.raises(RunDirectoryError, match="another version"):
        PracticeFiles.read_plan(files.path)
