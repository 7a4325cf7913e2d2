"""`robot-rl data`, used as a user would."""

import contextlib
import dataclasses
import json
import os
import signal
import time
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from running import robot_rl, start
from tagged import assert_same, steps, valid

from robot_rl.data.schema import Source
from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.viz.contact_sheet import contact_sheet
from robot_rl.viz.episode_frame import LINE, PAPER, SOURCE_COLOURS
from robot_rl.viz.film import write_film

pytestmark = pytest.mark.slow


def data(*arguments, code=0):
    done = robot_rl("data", *arguments)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def store(tmp_path):
    """A run's store: a success, a failure, and an episode that was interrupted."""
    path = tmp_path / "run" / "episodes"
    with EpisodeStore.create(path, {"task": "reach", "seed": 0}) as made:
        made.append(valid(0, 5, image_shape=(48, 64, 3)))
        made.append(valid(1, 9, end="truncated", image_shape=(48, 64, 3)))
        made.begin("episode-2")
        for step in steps(valid(2, 8, image_shape=(48, 64, 3)))[:6]:
            made.record(step)
    EpisodeStore.open(path, write=True).close()
    return path


def test_ls_and_info_take_a_store_or_its_run(store):
    lines = data("ls", store.parent).stdout.splitlines()
    assert [line.split()[1:5] for line in lines] == [
        ["episode-0", "5", "steps", "success"],
        ["episode-1", "9", "steps", "failed"],
        ["episode-2", "5", "steps", "interrupted"],
    ]
    rows = json.loads(data("ls", store, "--json").stdout)
    assert [(row["steps"], row["success"], row["interrupted"]) for row in rows] == [
        (5, True, False),
        (9, False, False),
        (5, None, True),
    ]
    facts = json.loads(data("info", store, "--json").stdout)
    assert (facts["episodes"], facts["steps"], facts["successes"], facts["interrupted"]) == (3, 19, 1, ["episode-2"])
    assert facts["observations"]["images/wrist"] == "uint8 (48, 64, 3)"
    assert "the writer was interrupted" in facts["aside"]["aside/0"]
    assert "neither an episode store" in data("info", store.parent.parent, code=1).stderr


def test_verify_names_and_repair_moves(store):
    assert "3 episodes, 0 violations" in data("verify", store).stdout
    file = store / "episodes" / "000001.zarr.zip"
    file.write_bytes(file.read_bytes()[:-50])
    done = data("verify", store, code=1)
    assert "episodes/000001.zarr.zip, no episode, file: damaged" in done.stdout
    assert "verify --repair" in data("ls", store, code=1).stderr
    verdict = json.loads(data("verify", store, "--repair", "--json").stdout)
    assert "moved episodes/000001.zarr.zip to" in verdict["repaired"][0]
    assert "2 episodes, 0 violations" in data("verify", store).stdout


def test_a_later_label_of_a_person_decides_what_failed(store):
    label_episode(store, "episode-0", False, "somebody")
    label_episode(store, "episode-1", True, "somebody")
    told = {row["episode_id"]: row["success"] for row in json.loads(data("ls", store, "--json").stdout)}
    assert (told["episode-0"], told["episode-1"]) == (False, True)
    assert "successes: 1" in data("info", store).stdout
    data("prune", store, "--failed")
    with EpisodeStore.open(store) as left:
        assert left.ids() == ["episode-1"]


def test_prune_merge_and_split(store, tmp_path):
    twice = ("--into", "a=0.5", "--into", "a=0.5", "--into", "b=0.5")
    assert "names a new store twice" in data("split", store, *twice, "--out", tmp_path / "twice", code=2).stderr
    assert "select episodes" in data("prune", store, code=2).stderr
    assert "no episodes nope" in data("prune", store, "--episode", "nope", code=1).stderr
    assert "1 episodes taken out; they lie in" in data("prune", store, "--interrupted").stdout
    assert "both hold episode-0; --rename" in data("merge", store, store, "--out", tmp_path / "m", code=1).stderr
    assert data("merge", store, store, "--rename", "--out", tmp_path / "m").stdout.startswith("4 episodes")
    parts = ("--into", "train=0.75", "--into", "test=0.25")
    answer = json.loads(data("split", tmp_path / "m", *parts, "--out", tmp_path / "s", "--json").stdout)
    assert answer == {"train": 3, "test": 1}
    assert "train=0.8" in data("split", store, "--into", "train", "--out", tmp_path / "t", code=2).stderr


def test_export_and_import_come_back_exactly(store, tmp_path):
    pytest.importorskip("pyarrow", reason="LeRobot datasets need pyarrow: pip install 'robot_rl[lerobot]'")
    assert "give it with --fps" in data("export", store, "--out", tmp_path / "d", code=1).stderr  # stamps 1 ns apart
    done = data("export", store, "--fps", "10", "--out", tmp_path / "d")
    assert "3 episodes, 19 frames" in done.stdout
    assert "kept beside it, as the format has no place for it: episode ids and metadata" in done.stdout
    data("import", tmp_path / "d", "--out", tmp_path / "back")
    with EpisodeStore.open(store) as before, EpisodeStore.open(tmp_path / "back") as after:
        assert after.metadata == before.metadata
        for one, other in zip(before.episodes(), after.episodes(), strict=True):
            assert_same(one, other)
    assert "needs --mapping FILE" in data("import", write_empty_bag(tmp_path), "--out", tmp_path / "x", code=2).stderr
    refused = data("import", tmp_path / "nothing", "--out", tmp_path / "x", code=1).stderr
    assert "no bag (*.mcap) there, nor a dataset of LeRobot (meta/info.json), nor pickles of SERL (*.pkl)" in refused
    assert not (tmp_path / "x").exists()


def write_empty_bag(tmp_path):
    (tmp_path / "bag.mcap").write_bytes(b"")
    return tmp_path / "bag.mcap"


# ------------------------------------------------------------------------- view


def test_view_writes_pictures_and_films_without_a_screen(store, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = robot_rl("data", "view", store, "--out", tmp_path / "sheet.png", env=environment)
    assert done.returncode == 0, done.stderr
    assert Image.open(tmp_path / "sheet.png").size[0] == 960
    data("view", store, "--episode", "episode-1", "--out", tmp_path / "film.mp4")
    with av.open(str(tmp_path / "film.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == 10
    assert ".png, .mp4, .rrd" in data("view", store, "--out", tmp_path / "sheet.gif", code=2).stderr
    assert "no episode 'nope'" in data("view", store, "--episode", "nope", "--out", tmp_path / "x.png", code=1).stderr


def test_view_writes_a_rerun_file(store, tmp_path):
    rerun = pytest.importorskip("rerun", reason="viewing needs Rerun: pip install 'robot_rl[rerun]'")
    with EpisodeStore.open(store) as opened, OverlayWriter(store, "vlm", {}) as writer:
        writer.write(opened.read("episode-0"), opened.fingerprint("episode-0"), np.zeros(5))
    data("view", store, "--episode", "episode-0", "--out", tmp_path / "e.rrd")
    content = (tmp_path / "e.rrd").read_bytes()
    print(f"rerun {rerun.__version__}: {len(content)} bytes")
    for name in (b"images/wrist", b"state/a", b"action_policy", b"source", b"label_vlm"):
        assert name in content


@pytest.mark.parametrize("arms", [[""], ["left/", "right/"]], ids=["one arm", "two arms"])
def test_a_rerun_file_shows_each_tool_in_space(tmp_path, arms):
    pytest.importorskip("rerun", reason="viewing needs Rerun: pip install 'robot_rl[rerun]'")
    whole = valid(0, 5)
    way = np.linspace(0, 0.1, 36).reshape(6, 6).astype(np.float32)
    seen = {f"state/{arm}{name}": way for arm in arms for name in ("tcp_pose", "wrench")}
    with EpisodeStore.create(tmp_path / "store", {"task": "reach", "seed": 0}) as made:
        made.append(dataclasses.replace(whole, observations={**whole.observations, **seen}))
    data("view", tmp_path / "store", "--out", tmp_path / "e.rrd")
    content = (tmp_path / "e.rrd").read_bytes()
    for name in [f"scene/{arm}{part}" for arm in arms for part in ("way", "tcp/axes", "tcp/force")]:
        assert name.encode() in content


def test_a_contact_sheet_shows_who_acted_and_the_reward(tmp_path):
    whole = valid(0, 10, sources=[Source.POLICY] * 5 + [Source.HUMAN] * 5)
    flat = {key: value for key, value in whole.observations.items() if key.startswith("state/")}
    reward = np.where(np.arange(10) == 9, 1, 0).astype(np.float32)
    contact_sheet([dataclasses.replace(whole, observations=flat, reward=reward)], tmp_path / "s.png")
    pixels = np.asarray(Image.open(tmp_path / "s.png"))
    band = pixels[56 + 16 + 3]
    assert {tuple(pixel) for pixel in band[2:470].tolist()} == {SOURCE_COLOURS[Source.POLICY]}
    assert {tuple(pixel) for pixel in band[490:958].tolist()} == {SOURCE_COLOURS[Source.HUMAN]}
    red = (pixels[56 + 16 + 8 + 40] == (200, 30, 30)).all(-1)
    assert not red[:850].any()
    assert red[870:].mean() > 0.8
    with pytest.raises(DataError, match=r"has no images to film; a \.png shows actions too"):
        write_film([dataclasses.replace(whole, observations=flat)], tmp_path / "s.mp4")
    assert not (tmp_path / "s.mp4").exists()


def test_the_legend_of_many_action_elements_goes_on_in_another_line(tmp_path):
    whole = valid(0, 10)
    flat = {key: value for key, value in whole.observations.items() if key.startswith("state/")}
    sheets = []
    for elements in (9, 10):
        actions = np.zeros((10, elements), np.float32)
        contact_sheet([dataclasses.replace(whole, observations=flat, action=actions)], tmp_path / "s.png")
        sheets.append(np.asarray(Image.open(tmp_path / "s.png")))
    assert len(sheets[1]) - len(sheets[0]) == LINE
    (square,) = np.unique(sheets[1][2 * LINE + 6 : 2 * LINE + 12, 161:169].reshape(-1, 3), axis=0)
    assert (square != PAPER).any()


# ------------------------------------------------------- everything goes through it


def test_a_demonstration_that_is_killed_is_recovered(tmp_path):
    """Real recording: `robot-rl demo`, killed while an episode runs."""
    path = tmp_path / "demos"
    process = start("demo", "reach", "--episodes", 5000, "--out", path)
    while len(list(path.glob("episodes/*.zip"))) < 2:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = list((path / "partial").iterdir())
    verdict = json.loads(data("verify", path, "--repair", "--json").stdout)
    assert verdict["violations"] == []
    assert len(verdict["repaired"]) == len(left)
    assert "0 violations" in data("verify", path).stdout


def test_ctrl_c_while_processes_verify_is_one_line(tmp_path):
    with EpisodeStore.create(tmp_path / "many", {"task": "reach"}) as made:
        for number in range(40):
            made.append(valid(number, 2))
    process = start("data", "verify", made.path, "--jobs", "2")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def importing(pid):
        with contextlib.suppress(OSError):
            spawned = "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
            return spawned and "numpy" in Path(f"/proc/{pid}/maps").read_text()
        return False

    while not any(map(importing, children.read_text().split())):
        assert process.poll() is None
        time.sleep(0.002)
    for pid in (*children.read_text().split(), process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGINT)  # a terminal sends it to all of them
    text = process.communicate(timeout=60)[1]
    assert (process.returncode, "Traceback" in text) == (130, False), text
    assert "robot-rl: stopped" in text
