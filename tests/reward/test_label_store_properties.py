"""The store of labels: everything comes back, from any process, with several writers at work."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.errors import DataError, RunDirectoryError, UnknownNameError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import DATABASE, LABELS, LabelStore
from robot_rl.reward.query import QueryKind, canonical

WHO = {"backend": "openai", "model": "m"}
REAL = st.floats(allow_nan=False, allow_infinity=False)
WRITER = """
import sys
from pathlib import Path
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.query import QueryKind

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with LabelStore(path, create=True) as store:
    store.begin(name, QueryKind.SUCCESS, {"model": name}, {})
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(count):
        store.add(name, f'[{{"n":{n}}}]', f"{name}-{n}", Answer(Status.OK, (n / count,)), {"model": name})
        print(n, flush=True)
"""


@st.composite
def answers(draw):
    status = draw(st.sampled_from(Status))
    values = tuple(draw(st.lists(REAL, min_size=1, max_size=5))) if status is Status.OK else ()
    details = draw(st.dictionaries(st.text(max_size=8), st.none() | st.text() | REAL | st.lists(REAL, max_size=2)))
    counts = draw(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)))
    return Answer(status, values, draw(st.text()), details, *counts, draw(REAL), draw(REAL), draw(st.integers(1, 9)))


@settings(max_examples=25)
@given(st.lists(st.tuples(st.text(max_size=20), answers()), max_size=6, unique_by=lambda row: row[0]))
def test_every_answer_comes_back_in_the_order_in_which_it_was_added(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("labels")
    with LabelStore(path, create=True) as store:
        store.begin("mine", QueryKind.SCORE, WHO, {})
        for number, (episode, answer) in enumerate(rows):
            store.add("mine", canonical([{"episode_id": episode}]), f"key-{number}", answer, WHO)
    with LabelStore(path) as store:
        found = list(store.labels("mine"))
        assert [(label.subject[0]["episode_id"], label.answer) for label in found] == rows
        assert all(store.find("mine", canonical(list(label.subject))) == label.answer for label in found)
        assert store.kind("mine") is QueryKind.SCORE


def start(path, name, count):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, name, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "ready\n"
    return writer


def test_labellers_in_several_processes_write_at_the_same_time(tmp_path):
    LabelStore(tmp_path, create=True).close()
    writers = {name: start(tmp_path, name, 25) for name in ("one", "two")}
    with pytest.raises(RunDirectoryError), LabelStore(tmp_path) as store:
        store.begin("one", QueryKind.SUCCESS, {"model": "one"}, {})  # another process has that name
    for writer in writers.values():
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.wait(60) for writer in writers.values()] == [0, 0]
    for writer in writers.values():
        writer.stdin.close()
        writer.stdout.close()
    with LabelStore(tmp_path) as store:
        assert store.names() == ["one", "two"]
        for name in store.names():
            assert [label.answer.values[0] for label in store.labels(name)] == [n / 25 for n in range(25)]


def test_a_labeller_that_is_killed_leaves_what_it_had_added_and_its_name_is_free(tmp_path):
    writer = start(tmp_path, "mine", 10**6)
    writer.stdin.write("\n")
    writer.stdin.flush()
    seen = [int(writer.stdout.readline()) for _ in range(5)]
    writer.kill()
    writer.wait(60)
    seen += [int(line) for line in writer.stdout.read().split() if line.isdigit()]
    writer.stdin.close()
    writer.stdout.close()
    with LabelStore(tmp_path) as store:
        kept = [label.subject[0]["n"] for label in store.labels("mine")]
        assert kept[: len(seen)] == seen, "what it reported is on the disk"
        assert len(kept) <= len(seen) + 1
        store.begin("mine", QueryKind.SUCCESS, {"model": "mine"}, {})


def test_the_first_answer_to_a_query_stays(tmp_path):
    with LabelStore(tmp_path, create=True) as store:
        store.begin("mine", QueryKind.SUCCESS, WHO, {})
        for value in (0.1, 0.9):
            store.add("mine", "[]", "key", Answer(Status.OK, (value,)), WHO)
        assert [label.answer.values for label in store.labels("mine")] == [(0.1,)]


def test_labels_of_one_name_are_not_those_of_another(tmp_path):
    with LabelStore(tmp_path, create=True) as store:
        for name in ("a", "b"):
            store.begin(name, QueryKind.SUCCESS, WHO, {})
        store.add("a", "[1]", "key", Answer(Status.OK, (0.5,)), WHO)
        assert store.has("a", "[1]")
        assert not store.has("b", "[1]")
        assert store.find("b", "[1]") is None
        assert store.link("b", "[1]", "key"), "the answer is used again"
        assert store.find("b", "[1]") == store.find("a", "[1]")


def test_episodes_that_a_labeller_was_trained_on_are_named(tmp_path):
    with LabelStore(tmp_path, create=True) as store:
        store.begin("head", QueryKind.SUCCESS, {**WHO, "trained_on": ["e1", "e2"]}, {})
        store.begin("server", QueryKind.SUCCESS, WHO, {})
        assert (store.trained_on("head"), store.trained_on("server")) == (["e1", "e2"], [])
        with pytest.raises(UnknownNameError, match="head, server"):
            store.kind("nobody")


def test_nothing_is_added_by_a_process_that_has_not_begun(tmp_path):
    with LabelStore(tmp_path, create=True) as store, pytest.raises(RunDirectoryError, match="begin 'mine' before"):
        store.add("mine", "[]", "key", Answer(Status.UNSURE), WHO)


@pytest.mark.parametrize("name", ["", "A", "../x", "a b", "a/b"])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path, name):
    with LabelStore(tmp_path, create=True) as store, pytest.raises(DataError):
        store.begin(name, QueryKind.SUCCESS, WHO, {})


def test_a_store_without_labels_names_the_command_that_makes_some(tmp_path):
    with pytest.raises(DataError, match="robot-rl label run"):
        LabelStore(tmp_path)
    assert not (tmp_path / LABELS / DATABASE).exists()


def test_what_is_kept_is_json_that_other_programs_read(tmp_path):
    import sqlite3

    with LabelStore(tmp_path, create=True) as store:
        store.begin("mine", QueryKind.SUCCESS, WHO, {"note": "ä"})
        store.add("mine", "[]", "key", Answer(Status.OK, (0.25,), details={"why": "ö"}), WHO)
    with sqlite3.connect(tmp_path / LABELS / DATABASE) as database:
        (row,) = database.execute("SELECT vals, details FROM answer")
        (settings_,) = database.execute("SELECT settings FROM labeller").fetchone()
    database.close()
    assert [json.loads(text) for text in (*row, settings_)] == [[0.25], {"why": "ö"}, {"note": "ä"}]
