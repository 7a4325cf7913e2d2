import datetime
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from robot_rl.config.components import SACConfig, TrainConfig
from robot_rl.errors import RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory, default_run_path

CONFIG = TrainConfig(task="reach", seed=5, sac=SACConfig(n_step=1))

HOLD = """
import sys, time
from pathlib import Path
from robot_rl.config.components import TrainConfig
from robot_rl.run.directory.run_directory import RunDirectory
run = RunDirectory.create(Path(sys.argv[1]), TrainConfig(task="reach"))
print("held", flush=True)
time.sleep(60)
"""

FULL = """
import resource, sys
from pathlib import Path
from robot_rl.errors import RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory
run = RunDirectory.resume(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # a disk with 1000 bytes left
try:
    run.write_json(run.summary_path, {"a": "x" * 5000})
except RunDirectoryError as error:
    print(error)
"""


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_default_name_tells_task_seed_and_time():
    now = datetime.datetime(2024, 5, 6, 7, 8, 9)
    assert default_run_path("reach", 3, now) == Path("runs/reach-seed3-20240506-070809")


def test_created_and_resumed_it_knows_its_configuration_and_every_start(tmp_path):
    with RunDirectory.create(tmp_path / "a" / "b", CONFIG, argv=["robot-rl", "train"]) as run:
        assert run.config == CONFIG
        assert list(run.episodes_path.iterdir()) == []
    with RunDirectory.resume(run.path, task="reach", argv=["robot-rl", "train", "--resume"]) as again:
        assert again.config == CONFIG
        facts = json.loads(again.provenance_path.read_text())
    assert (facts["task"], facts["seed"]) == ("reach", 5)
    assert [start["argv"][-1] for start in facts["starts"]] == ["train", "--resume"]
    assert facts["starts"][1] == again.provenance


def test_an_empty_directory_may_be_used(tmp_path):
    RunDirectory.create(tmp_path, CONFIG).close()


def test_a_directory_with_something_else_in_it_is_left_as_it_was(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = snapshot(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"not empty \(thesis.tex\).*choose another"):
        RunDirectory.create(tmp_path, CONFIG)
    with pytest.raises(RunDirectoryError, match="holds no run"):
        RunDirectory.resume(tmp_path)
    assert snapshot(tmp_path) == before


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="its name is not UTF-8; choose another directory"):
        RunDirectory.check_free(tmp_path / "caf\udce9")


def test_a_run_is_not_overwritten(tmp_path):
    RunDirectory.create(tmp_path, CONFIG).close()
    before = snapshot(tmp_path)
    with pytest.raises(RunDirectoryError, match="already holds a run; add --resume"):
        RunDirectory.create(tmp_path, CONFIG)
    assert {**snapshot(tmp_path), str(tmp_path / "lock"): b""} == {**before, str(tmp_path / "lock"): b""}


def test_another_process_is_named_and_its_death_frees_the_directory(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        for take in (lambda: RunDirectory.create(tmp_path, CONFIG), lambda: RunDirectory.resume(tmp_path)):
            with pytest.raises(RunDirectoryError, match=f"in use by process {process.pid};"):
                take()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    RunDirectory.resume(tmp_path).close()


def test_one_process_cannot_use_it_twice_but_after_close_it_can(tmp_path):
    run = RunDirectory.create(tmp_path, CONFIG)
    with pytest.raises(RunDirectoryError, match=f"in use by process {os.getpid()}"):
        RunDirectory.resume(tmp_path)
    run.close()
    run.close()
    RunDirectory.resume(tmp_path).close()


def test_a_failed_resume_lets_go_of_the_lock(tmp_path):
    RunDirectory.create(tmp_path, CONFIG).close()
    with pytest.raises(RunDirectoryError, match="is a run of task 'reach', not of 'peg_insert'"):
        RunDirectory.resume(tmp_path, task="peg_insert")
    RunDirectory.resume(tmp_path, task="reach").close()


@pytest.mark.parametrize("name", ["schema_version", "format"])
def test_a_run_of_another_version_is_refused(tmp_path, name):
    run = RunDirectory.create(tmp_path, CONFIG)
    run.close()
    facts = json.loads(run.provenance_path.read_text())
    run.provenance_path.write_text(json.dumps({**facts, name: 99}))
    with pytest.raises(RunDirectoryError, match=f"{name} 99, this program reads 1"):
        RunDirectory.resume(tmp_path)


@pytest.mark.parametrize(("text", "expected"), [("{", "cannot read"), ("[]", "lacks format"), ("{}", "lacks format")])
def test_a_broken_provenance_is_refused(tmp_path, text, expected):
    run = RunDirectory.create(tmp_path, CONFIG)
    run.close()
    run.provenance_path.write_text(text)
    with pytest.raises(RunDirectoryError, match=expected):
        RunDirectory.resume(tmp_path)


def test_an_edited_configuration_that_is_wrong_is_refused(tmp_path):
    with RunDirectory.create(tmp_path, CONFIG) as run:
        run.config_path.write_text("seed: many\n")
        with pytest.raises(RunDirectoryError, match="seed"):
            _ = run.config


def test_where_nothing_can_be_written_the_error_says_so(tmp_path):
    with pytest.raises(RunDirectoryError, match="cannot write /proc/robot_rl"):
        RunDirectory.create(Path("/proc/robot_rl"), CONFIG)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(RunDirectoryError, match="a file is in the way"):
            RunDirectory.create(path, CONFIG)


def test_a_full_disk_is_an_error_and_leaves_the_old_file(tmp_path):
    with RunDirectory.create(tmp_path, CONFIG) as run:
        run.write_json(run.summary_path, {"success_rate": 0.5})
    before = run.summary_path.read_bytes()
    # The provenance grows on resume, so the limit is set after it.
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert f"cannot write {run.summary_path}" in done.stdout
    assert run.summary_path.read_bytes() == before
    assert not list(tmp_path.glob(".*.tmp"))
