"""A call that is refused: one line with the cure, and nothing left behind that blocks the corrected call."""

import socket
import subprocess
import sys

import pytest
from blind_plugins import install_blind_plugins
from running import SMALL, environment, snapshot

from robot_rl.cli.main import main
from robot_rl.config.components import TrainConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.directory_lock import Lock
from robot_rl.system.new_directory import NewDirectory

BRIEF = (*SMALL, "--steps", "40", "--episodes", "1", "--set", "evaluation.curve_interval=0")


@pytest.fixture
def refused(capsys):
    """Runs a command in this process, which has to refuse it in one line."""

    def run(line, message):
        assert main(line.split()) == 1
        printed = capsys.readouterr()
        complaints = [line for line in printed.err.splitlines() if line.startswith("robot-rl: ")]
        assert len(complaints) == 1
        assert message in complaints[0]
        assert (printed.out, "Traceback" in printed.err) == ("", False)

    return run


@pytest.fixture
def plugins(tmp_path_factory, monkeypatch):
    install_blind_plugins(tmp_path_factory.mktemp("plugins"), monkeypatch)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ------------------------------------------------------------ without cameras


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train blind --obs pixels --out new", "blind has no cameras"),
        ("train dot --obs pixels --out new --set demonstrations=0", "dot has no cameras"),
        ("demo blind --obs pixels --out new", "do without --obs pixels"),
        ("demo blind --camera front --out new", "has no cameras"),
        ("classifier record blind --out new", "has no cameras"),
        ("train dot --out new", "dot has no operator who could demonstrate; train without demonstrations (--set"),
        ("demo dot --out new", "dot has no operator"),
        ("demo dot --console --out new", "dot is an environment without a robot"),
        ("train dot --console --out new", "dot is an environment without a robot"),
        ("classifier record dot --out new", "dot is an environment without a robot"),
    ],
)
def test_what_needs_cameras_or_an_operator_where_there_is_none(line, message, plugins, work, refused):
    refused(line, message)
    assert not list(work.iterdir())


@pytest.mark.slow
def test_a_task_without_cameras_is_trained_and_evaluated_but_not_filmed(plugins, work, refused, capsys):
    assert main(["train", "blind", "--out", "run", *BRIEF, "--set", "evaluation.video_episodes=1"]) == 0
    assert "note: no video: blind has no cameras" in capsys.readouterr().err
    before = snapshot(work)
    cure = "has no cameras, so nothing can be seen or filmed; do without --obs pixels, --camera, --video"
    refused("eval run --episodes 1 --video x.mp4", cure)
    assert snapshot(work) == before


# ------------------------------------------------- a directory with several runs


@pytest.mark.parametrize(
    "line",
    [
        "classifier train frames --out taken",
        "classifier report classifier.pt frames --out taken",
        "label train demos --out taken",
        "doctor --html taken",
        "calibrate intrinsics pictures --board charuco:11x8:20mm:15mm --camera front --out taken",
        "calibrate wrench poses.csv --robot fr3 --out tool.yaml --report taken",
        "calibrate sim store --task peg_insert --robot fr3 --out arm.yaml --train-config taken",
    ],
)
def test_a_result_that_cannot_be_written_is_refused_before_the_work(line, work, refused):
    """Which takes minutes: here what it needs is not even there."""
    (work / "taken").mkdir()
    refused(line, "taken")


def test_a_directory_with_runs_in_it_names_them(work, refused):
    for name in (
        "relocate_back",
        "relocate_forward",
        "robots/arm1",
        *(f"trials/{number:03d}/seed-0" for number in range(7)),
    ):
        RunDirectory.create(work / "runs" / name, TrainConfig()).close()
    named = "runs is no run itself, it holds relocate_back, relocate_forward, robots/arm1, trials/000/seed-0"
    refused("inspect runs", named)
    refused("inspect runs", "trials/004/seed-0 and 2 more; name one of these, e.g. runs/relocate_back")
    refused("inspect runs/robots", "it holds arm1; name one of these, e.g. runs/robots/arm1")
    refused("eval runs", named)


# --------------------------------------------------------------- nothing is left


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    store = tmp_path_factory.mktemp("demos") / "reach"
    assert main(["demo", "reach", "--episodes", "2", "--out", str(store)]) == 0
    return store


@pytest.mark.slow
def test_demonstrations_of_another_task_do_not_block_the_corrected_call(demos, work, refused):
    cure = f"{demos}: holds demonstrations of reach, not of peg_insert; name a store of peg_insert, or record"
    refused(f"train peg_insert --demos {demos} --out runs/run", cure)
    assert not list(work.iterdir())
    assert main(["train", "reach", "--demos", str(demos), "--out", "runs/run", *BRIEF]) == 0


@pytest.mark.slow
def test_demonstrations_of_two_tasks_are_not_mixed_in_one_store(demos, refused):
    before = snapshot(demos)
    cure = "holds demonstrations of reach; choose another --out for peg_insert"
    refused(f"demo peg_insert --console 127.0.0.1:0 --out {demos}", cure)
    assert {**snapshot(demos), "writer.lock": b""} == {**before, "writer.lock": b""}


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "demo reach --out new/store",
        "classifier record reach --out new/store",
        "train reach --out new/run",
        "train reach --out new/run --steps 40 --demos",
    ],
)
def test_a_busy_port_leaves_nothing(line, demos, work, refused):
    line = f"{line} {demos}" if line.endswith("--demos") else line
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(f"{line} --console {address}", f"cannot listen on {address}")
    assert not list(work.iterdir())


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_of_a_run_that_had_not_begun(tmp_path):
    code = (
        "import resource, sys\nfrom robot_rl.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\nsys.exit(main(sys.argv[1:]))"
    )
    for line in ("train reach --out new", "demo reach --out new"):
        command = [sys.executable, "-c", code, *line.split()]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert "cannot write new" in done.stderr
        assert not list(tmp_path.iterdir())


def test_only_what_is_new_goes_and_only_before_anything_was_recorded(tmp_path):
    folder = tmp_path / "a" / "b"
    new = NewDirectory(folder)
    folder.mkdir(parents=True)
    for name, begun in (("kept", True), ("gone", False)):
        (folder / name).mkdir()
        (folder / name / "file").write_text("x")
        new.removed_on_error(lambda begun=begun: begun)(None, None, None)
        assert (folder / name / "file").exists(), "no error, nothing goes"
        new.removed_on_error(lambda begun=begun: begun)(OSError, None, None)
        assert tmp_path.joinpath("a").exists() is begun

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    new = NewDirectory(tmp_path / "mine")
    (tmp_path / "mine" / "store.json").write_text("{}")
    new.removed_on_error(lambda: False)(KeyboardInterrupt, None, None)
    assert snapshot(tmp_path) == {"mine/thesis.tex": b"years of work"}


def test_a_new_store_stays_if_anything_was_recorded_or_nothing_failed(tmp_path):
    with pytest.raises(DataError), EpisodeStore.create(tmp_path / "gone"):
        raise DataError("refused")
    with EpisodeStore.create(tmp_path / "empty"):
        pass
    with pytest.raises(DataError), EpisodeStore.create(tmp_path / "noted") as store:
        (store.path / "operator.jsonl").write_text("{}\n")
        raise DataError("refused")
    with pytest.raises(DataError), EpisodeStore.open(tmp_path / "empty", write=True):
        raise DataError("an old store is never removed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "noted"]


def test_a_directory_in_use_is_not_cleared_by_who_is_refused(work, refused):
    (work / "used").mkdir()
    with Lock(work / "used" / "lock"):
        (work / "used" / "config.yaml").write_text("task: reach")
        refused("train reach --out used", "is not empty")
        refused("demo reach --out used", "not empty")
    assert set(snapshot(work / "used")) == {"lock", "config.yaml"}
