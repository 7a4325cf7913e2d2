import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from robot_rl.errors import DataError, RunDirectoryError, UnknownNameError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.query import QueryKind

WHO = {"backend": "openai", "model": "m", "temperature": 0.0}
ANSWER = Answer(Status.OK, (0.25,), "äh, {no}", {"log_odds": -1.1}, 120, 7, 0.002, 1.5, 2)
SUBJECT = '[{"episode_id":"e","rows":[9]}]'


def opened(path, **options):
    store = LabelStore(path, **options)
    store.begin("success", QueryKind.SUCCESS, WHO, {"note": 1})
    return store


def test_a_label_comes_back_as_it_was_also_from_another_process(tmp_path):
    with opened(tmp_path, create=True) as store:
        store.add("success", SUBJECT, "k1", ANSWER, WHO)
    with LabelStore(tmp_path) as store:
        (label,) = store.labels("success")
        assert (label.key, label.subject, label.answer) == ("k1", ({"episode_id": "e", "rows": [9]},), ANSWER)
        assert label.time.endswith("+00:00")
        assert (store.names(), store.kind("success"), store.settings("success")) == (
            ["success"],
            QueryKind.SUCCESS,
            {"note": 1},
        )


def test_who_reads_does_not_wait_for_who_writes(tmp_path):
    opened(tmp_path, create=True).close()
    (file,) = (tmp_path / "labels").glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with LabelStore(tmp_path) as store:
            assert store.names() == ["success"]


def test_what_is_there_is_found_and_can_be_used_for_another_subject(tmp_path):
    with opened(tmp_path, create=True) as store:
        assert not store.has("success", SUBJECT)
        assert not store.link("success", SUBJECT, "k1")
        store.add("success", SUBJECT, "k1", ANSWER, WHO)
        assert store.has("success", SUBJECT)
        assert store.link("success", "[]", "k1")
        assert [label.key for label in store.labels("success")] == ["k1", "k1"]


def test_a_full_disk_is_called_one_and_what_was_there_stays(tmp_path):
    with opened(tmp_path, create=True) as store:
        store.add("success", SUBJECT, "k1", ANSWER, WHO)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages}")  # to SQLite it is as if the disk ended there
        with pytest.raises(RunDirectoryError, match="is full; check that the disk has room"):
            store.add("success", "[]", "k2", replace(ANSWER, raw="x" * 100_000), WHO)
        store._db.execute(f"PRAGMA max_page_count={2 * pages}")
        store.add("success", "[1]", "k3", ANSWER, WHO)
        assert [label.key for label in store.labels("success")] == ["k1", "k3"]


def test_a_name_stands_for_one_way_of_labelling(tmp_path):
    opened(tmp_path, create=True).close()
    with LabelStore(tmp_path) as store, pytest.raises(DataError, match=r"model was 'm', is 'n'.*choose another --name"):
        store.begin("success", QueryKind.SUCCESS, {**WHO, "model": "n"}, {})
    with LabelStore(tmp_path) as store, pytest.raises(DataError, match="kind was 'success', is 'progress'"):
        store.begin("success", QueryKind.PROGRESS, WHO, {})


def test_one_labeller_at_a_time_for_a_name(tmp_path):
    with opened(tmp_path, create=True), LabelStore(tmp_path) as other:
        with pytest.raises(RunDirectoryError, match="in use by process"):
            other.begin("success", QueryKind.SUCCESS, WHO, {})
        other.begin("progress", QueryKind.PROGRESS, WHO, {})


def test_bad_names_and_missing_or_damaged_labels(tmp_path):
    with pytest.raises(DataError, match="no labels there; `robot-rl label run` makes some"):
        LabelStore(tmp_path)
    with LabelStore(tmp_path, create=True) as store:
        with pytest.raises(UnknownNameError, match="unknown labels 'x'; valid: \\(none\\)"):
            list(store.labels("x"))
        with pytest.raises(DataError, match="lower-case"):
            store.begin("../x", QueryKind.SUCCESS, WHO, {})
        with pytest.raises(RunDirectoryError, match="begin 'success' before"):
            store.add("success", SUBJECT, "k", ANSWER, WHO)
    path = tmp_path / "labels" / "labels.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(DataError, match="damaged"):
        LabelStore(tmp_path)
    path.unlink()
    sqlite3.connect(path).execute("PRAGMA user_version=9")
    with pytest.raises(DataError, match="is version 9, this program reads 2"):
        LabelStore(tmp_path)


def test_an_answer_without_a_reading_has_no_values():
    with pytest.raises(ValueError, match="unparsable with values"):
        Answer(Status.UNPARSABLE, (0.5,))
    with pytest.raises(ValueError, match="ok with values"):
        Answer(Status.OK)


def test_labels_of_version_1_open_and_their_server_belongs_to_them(tmp_path):
    (tmp_path / "labels").mkdir()
    db = sqlite3.connect(tmp_path / "labels" / "labels.sqlite")
    db.executescript((Path(__file__).parent / "labels_version_1.sql").read_text())
    db.close()
    for _ in range(2):  # migrated once, read again
        with LabelStore(tmp_path) as store:
            (label,) = store.labels("success")
            assert (label.key, label.answer.values, label.answer.raw) == ("k0", (0.75,), "yes")
            who = store.identity("success")
            assert who["url"] == "http://127.0.0.1:8000/v1"
            assert store.identity("head") == {"backend": "head", "model": "h"}
            store.begin("success", QueryKind.SUCCESS, who, {})
            with pytest.raises(DataError, match=r"url was 'http://127.0.0.1:8000/v1', is 'http://other/v1'"):
                store.begin("success", QueryKind.SUCCESS, {**who, "url": "http://other/v1"}, {})
