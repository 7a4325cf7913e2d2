"""One person beside trainings that take turns: one robot to hold, records and labels that belong to their task."""

import contextlib
import json
import os
from dataclasses import replace

import pytest
from fakes import SPEC, fake_workcell
from tagged import episode

from robot_rl.console.access.address import Address
from robot_rl.console.buttons import PageActions
from robot_rl.console.recorded_episodes import Archive
from robot_rl.console.turns_state import TurnsState
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_io import Command
from robot_rl.env.supervision import E_STOP, PAUSE
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import StepOrderError, UnknownNameError
from robot_rl.geometry import Pose
from robot_rl.hil.operator_setup import OperatorOptions
from robot_rl.hil.turns_operator import TurnsOperator
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.system.checked_json import read_rows

TASKS = ("there", "back")
OPTIONS = OperatorOptions(console=Address("127.0.0.1:0"))


@pytest.fixture
def beside(tmp_path):
    """The person, with both trainings open, and the robot of each."""
    person = TurnsOperator(OPTIONS, {task: tmp_path / task for task in TASKS}, 100)
    cells = {}
    with pytest.raises(StepOrderError, match="no training is open"):
        person.held  # noqa: B018
    for task in TASKS:
        (tmp_path / task).mkdir()
    with_stop = {"time": "2026-01-02", "who": "Anna", "kind": "do", "what": "e-stop"}
    released = {**with_stop, "time": "2026-01-01", "what": "release e-stop"}
    (tmp_path / "back" / "operator.jsonl").write_text(json.dumps(released) + "\n")
    (tmp_path / "there" / "operator.jsonl").write_text(json.dumps(with_stop) + "\n")

    def opened(task):
        cell = fake_workcell(replace(SPEC, name=task))
        cells[task] = cell.io
        return person.beside(task).environment(cell, WorkcellOptions(), interventions=True, overrule_s=2.0)

    with opened("there"), opened("back"):
        yield person, cells


def test_the_newest_stop_of_all_records_is_on_and_a_hold_is_of_whosever_turn_it_is(beside):
    person, robots = beside
    assert {hold.name for hold in person.setup.supervision.holds} == {E_STOP, PAUSE}
    command = Command(robots["there"].clock.now(), 1.0, Pose.identity())
    for task in TASKS:
        person.turn(task)
        person.io.command(command)
        assert not robots[task].commands, "it is dropped"
    for name in (E_STOP, PAUSE):
        person.setup.supervision.release(name)
    for task, other in (TASKS, TASKS[::-1]):
        before = len(robots[other].commands)
        person.turn(task)
        person.io.command(command)
        assert robots[task].commands[-1] is command
        assert len(robots[other].commands) == before
    person.need("look at it")
    assert person.held and person.board.state()["call"] == "look at it"
    assert [hold.reason for hold in person.setup.supervision.holds] == ["look at it"]
    person.needless()
    assert person.board.state()["call"] == ""


def test_what_is_pressed_and_noted_is_recorded_with_its_task(beside, tmp_path):
    person, _ = beside
    logs = {task: tmp_path / task / "operator.jsonl" for task in TASKS}
    actions = PageActions(person.setup.supervision, person.board, None, None, None, print, print, logs)
    person.turn("back")
    actions.write("Anna", "note", text="before an episode")
    person.turn("there")
    person.board.follow("there:episode-00004", 3, None)
    actions.write("Anna", "reason", text="stuck")
    actions.write("Anna", "label", label="operator-1", of="back:episode-00002", success=True)
    rows = {task: read_rows(log)[1:] for task, log in logs.items()}
    assert [(row["kind"], row["episode"], row["step"]) for row in rows["there"]] == [("reason", "episode-00004", 3)]
    assert [(row["kind"], row.get("of")) for row in rows["back"]] == [("note", None), ("label", "episode-00002")]


def test_pages_see_the_facts_and_curves_of_whose_turn_it_is_and_the_price_of_all():
    board = TurnsState(replace(SPEC, name="there"), 100)
    board.join(replace(SPEC, name="back", force_limit=5.0))
    for task, led in (("there", 2.5), ("back", 4.0)):
        board.listener(task)("episode", 10, {"success": True, "person": {"led_s": led, "takeovers": 1}})
    board.listener("back")("curve", 10, {"success_rate": 0.75})
    seen = board.state()
    assert (board.job["task"], board.job["turns"]) == ("there", list(TASKS))
    assert "success_alone" not in seen["health"]
    board.turn("back")
    now = board.state()
    assert (board.job["task"], board.job["force_limit"]) == ("back", 5.0)
    assert now["curves_version"] > seen["curves_version"], "pages get the other curves"
    assert now["health"]["success_alone"] == board.curves()["curve"][0]["success_rate"] == 0.75
    for one in (seen, now):
        assert one["health"]["person"] == {"led_s": 6.5, "takeovers": 2}
        assert one["health"]["env_step"] == 20
    assert len(board.episodes()) == 2, "what is counted goes on whosever turn it is"
    assert board.named("episode-00001") == "back:episode-00001"


def test_after_a_resume_the_newest_episodes_of_all_tasks_are_shown_in_the_order_in_which_they_were_played(
    beside, tmp_path
):
    person, _ = beside
    for place, task in enumerate(TASKS):
        with EpisodeStore.create(tmp_path / task / "episodes") as store:
            for number in range(20):
                store.append(episode(number, 3))
                played = 1e9 + 60.0 * (2 * number + place)
                os.utime(store.path / "episodes" / f"{number:06d}.zarr.zip", (played, played))
    with contextlib.ExitStack() as stack:
        for task in TASKS:
            metrics = stack.enter_context(MetricsWriter(tmp_path / task / "metrics.jsonl"))
            stack.enter_context(person.beside(task).session(tmp_path / task, metrics))
        stack.enter_context(person.serve())
        shown = [row["id"] for row in person.board.state()["ended"]]
    assert shown == [f"{task}:episode-{number}" for number in range(5, 20) for task in TASKS]


def test_an_episode_of_no_task_is_not_found(tmp_path):
    with pytest.raises(UnknownNameError, match="elsewhere"):
        Archive({task: tmp_path / task for task in TASKS}).replay("elsewhere:episode-00000")
