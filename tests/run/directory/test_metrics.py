import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from robot_rl.errors import DataError, RunDirectoryError, UnknownNameError
from robot_rl.run.directory.metrics import MetricsWriter, read_metrics

UPDATE = {"critic_loss": 0.5, "q_mean": 0.25, "steps_per_s": 30.0, "updates_per_s": 120.0, "utd": 4.0}


def write_updates(path: Path, steps, tensorboard=None, resume_step=None, offset=0):
    with MetricsWriter(path, tensorboard, resume_step) as writer:
        for step in steps:
            writer.write("update", step, {"updates": 4 * step + offset, **UPDATE})


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with MetricsWriter(path) as writer:
        writer.write("update", 3, {"updates": 12, **UPDATE, "critic_loss": float("nan")})
        assert len(read_metrics(path)) == 1  # on disk at once
        writer.write("evaluation", 3, {"episodes": 100, "success_rate": 0.96, "cycle_time_s": None})
    first, second = read_metrics(path)
    assert first == {"kind": "update", "env_step": 3, "updates": 12, **UPDATE, "critic_loss": None}
    assert second["success_rate"] == 0.96
    assert read_metrics(path, "evaluation") == [second]


def test_resumed_it_drops_what_came_after_the_checkpoint(tmp_path):
    path, board = tmp_path / "metrics.jsonl", tmp_path / "tensorboard"
    write_updates(path, [1, 2, 3, 4], board)
    time.sleep(1.0)  # TensorBoard reads files in the order of the second in which they were begun
    write_updates(path, [3, 4, 5], board, resume_step=2, offset=1000)
    assert [(r["env_step"], r["updates"]) for r in read_metrics(path)] == [
        (1, 4), (2, 8), (3, 1012), (4, 1016), (5, 1020)]  # fmt: skip
    events = EventAccumulator(str(board))
    events.Reload()
    scalars = {event.step: event.value for event in events.Scalars("update/updates")}
    assert scalars == {1: 4.0, 2: 8.0, 3: 1012.0, 4: 1016.0, 5: 1020.0}


def test_a_line_cut_short_by_a_kill_is_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_updates(path, [1, 2])
    with path.open("a") as file:
        file.write('{"kind": "update", "env_st')
    assert [record["env_step"] for record in read_metrics(path)] == [1, 2]
    write_updates(path, [3], resume_step=2)
    assert [record["env_step"] for record in read_metrics(path)] == [1, 2, 3]


def test_a_new_run_starts_a_new_file_and_resume_may_start_from_none(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write_updates(path, [1], resume_step=0)
    write_updates(path, [7])
    assert [record["env_step"] for record in read_metrics(path)] == [7]


@pytest.mark.parametrize(("line", "expected"), [("{", "line 2: is not JSON"), ("[1]", "line 2: is not a record")])
def test_a_broken_line_is_named(tmp_path, line, expected):
    path = tmp_path / "metrics.jsonl"
    write_updates(path, [1])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DataError, match=expected):
        read_metrics(path)
    with pytest.raises(DataError, match="cannot read"):
        read_metrics(tmp_path / "none.jsonl")


def test_a_record_must_be_of_a_known_kind_and_complete(tmp_path):
    with MetricsWriter(tmp_path / "metrics.jsonl") as writer:
        with pytest.raises(
            UnknownNameError,
            match=r"'epsiode'; valid: base, curve, .*, label, offline, preference_session, update",
        ):
            writer.write("epsiode", 1, {})
        with pytest.raises(DataError, match=r"'update' at env step 1 lacks updates$"):
            writer.write("update", 1, UPDATE)
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_a_full_disk_is_an_error(tmp_path):
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    writer = MetricsWriter(tmp_path / "metrics.jsonl")
    with pytest.raises(RunDirectoryError, match="the disk is full"):
        writer.write("update", 1, {"updates": 1, **UPDATE})
    with pytest.raises(RunDirectoryError, match="the disk is full"):
        writer.close()


def test_reading_needs_neither_torch_nor_tensorboard():
    code = "import sys, json, robot_rl.run.directory.metrics; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "tensorboard", "matplotlib"} & set(json.loads(done.stdout))


def test_resumed_it_keeps_what_is_never_repeated_also_in_tensorboard(tmp_path):
    path, board = tmp_path / "metrics.jsonl", tmp_path / "tensorboard"
    curve = {"episodes": 3, "success_rate": 0.5, "cycle_time_s": None}
    with MetricsWriter(path, board) as writer:
        writer.write("curve", 1, curve)
        writer.write("update", 2, {"updates": 8, **UPDATE})
        writer.write("curve", 3, curve)
    time.sleep(1.0)  # TensorBoard reads files in the order of the second in which they were begun
    with MetricsWriter(path, board, 1, ("curve",)) as writer:
        writer.write("curve", 5, curve)
    assert [(r["kind"], r["env_step"]) for r in read_metrics(path)] == [("curve", 1), ("curve", 3), ("curve", 5)]
    events = EventAccumulator(str(board))
    events.Reload()
    assert [event.step for event in events.Scalars("curve/success_rate")] == [1, 3, 5]


def test_the_one_record_of_a_step_replaces_what_a_killed_run_left_there(tmp_path):
    path = tmp_path / "metrics.jsonl"
    first, again = ({"episodes": 3, "success_rate": rate, "cycle_time_s": None} for rate in (0.5, 1.0))
    with MetricsWriter(path) as writer:
        writer.write("update", 3, {"updates": 12, **UPDATE})
        writer.replace("evaluation", 2, first)
        writer.replace("evaluation", 3, first)
    with MetricsWriter(path, resume_step=3) as writer:
        writer.replace("evaluation", 3, again)
        writer.write("update", 4, {"updates": 16, **UPDATE})
    assert [(r["kind"], r["env_step"], r.get("success_rate")) for r in read_metrics(path)] == [
        ("update", 3, None), ("evaluation", 2, 0.5), ("evaluation", 3, 1.0), ("update", 4, None)]  # fmt: skip
