"""Store -> LeRobotDataset v3 -> store, and LeRobot's own loader on what we wrote."""

import dataclasses
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tagged import assert_same, valid

from robot_rl.data.formats.lerobot_export import export_lerobot
from robot_rl.data.formats.lerobot_import import LeRobotReader
from robot_rl.data.schema import Source
from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError, RunDirectoryError

pa = pytest.importorskip("pyarrow", reason="LeRobot datasets need pyarrow: pip install 'robot_rl[lerobot]'")
pq = pytest.importorskip("pyarrow.parquet", reason="LeRobot datasets need pyarrow: pip install 'robot_rl[lerobot]'")

VIDEO_PSNR = 38.0
"""Bound for frames of smooth pictures with sensor noise (standard deviation 2) after H.264 [dB]."""


def smooth(steps, seed):
    """Frames as a camera gives them."""
    rng = np.random.default_rng(seed)
    ramp = np.add.outer(np.linspace(40, 140, 32), np.linspace(0, 80, 48))[None, ..., None]
    noise = rng.normal(0, 2, (steps + 1, 32, 48, 3))
    return np.clip(ramp + 10 * np.arange(3) + np.arange(steps + 1)[:, None, None, None] + noise, 0, 255).astype(
        np.uint8
    )


def rich(number, steps, **options):
    """An episode with every kind of column."""
    whole = valid(number, steps, sources=[Source(t % 3) for t in range(steps)], **options)
    observations = {
        **whole.observations,
        "images/front": smooth(steps, number),
        "state/double": np.linspace(0, 1, 3 * (steps + 1)).reshape(-1, 3) / 3,
        "state/matrix": np.arange(4 * (steps + 1), dtype=np.float32).reshape(-1, 2, 2),
        "state/flag": np.arange(steps + 1) % 2 == 0,
        "state/scalar": -np.arange(steps + 1, dtype=np.float32),
        "state/none": np.zeros((steps + 1, 0), np.float32),
        "state/int": np.full((steps + 1, 2), -(2**31), np.int32),
    }
    stamps = {"stamp_obs": 10**8 * np.arange(steps + 1), "stamp_action": 10**8 * np.arange(steps) + 10**6}
    return dataclasses.replace(whole, observations=observations, reward_source="classifier", **stamps)


EPISODES = [rich(0, 7), rich(1, 1, end="truncated"), rich(2, 4, end="truncated")]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with EpisodeStore.create(tmp_path_factory.mktemp("lerobot") / "store", {"task": "insert", "seed": 3}) as made:
        for whole in EPISODES:
            made.append(whole)
        yield made


@pytest.fixture(scope="module")
def exported(store, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "png"
    answer = export_lerobot(store, out)
    assert (answer["episodes"], answer["frames"], answer["fps"]) == (3, 12, 10.0)
    assert "the observation after the last step, and its stamp" in answer["beside"]
    return out


def test_a_round_trip_is_exact(store, exported):
    reader = LeRobotReader(exported)
    assert (len(reader), reader.metadata) == (3, store.metadata)
    for whole, read in zip(EPISODES, reader.episodes(), strict=True):
        assert_same(read, whole)


def test_videos_are_close(store, tmp_path):
    even = {"images/front"}
    with EpisodeStore.create(tmp_path / "store", {"task": "insert"}) as small:
        for whole in EPISODES:
            kept = {k: v for k, v in whole.observations.items() if k in even or k.startswith("state/")}
            small.append(dataclasses.replace(whole, observations=kept))
        export_lerobot(small, tmp_path / "video", images="video")
        for whole, read in zip(small.episodes(), LeRobotReader(tmp_path / "video").episodes(), strict=True):
            error = read.observations["images/front"].astype(float) - whole.observations["images/front"]
            psnr = 10 * np.log10(255**2 / np.mean(error[:-1] ** 2))
            print(f"PSNR {psnr:.1f} dB")
            assert psnr > VIDEO_PSNR
            same = {**read.observations, "images/front": whole.observations["images/front"]}
            assert_same(dataclasses.replace(read, observations=same), whole)


def test_statistics_are_those_of_all_frames(store, exported):
    stats = json.loads((exported / "meta" / "stats.json").read_text())
    actions = np.concatenate([whole.action for whole in EPISODES])
    pictures = np.concatenate([whole.observations["images/front"][:-1] for whole in EPISODES]) / 255
    assert stats["action"]["count"] == [12]
    for name, values, axes in (("action", actions, 0), ("observation.images.front", pictures, (0, 1, 2))):
        for key, function in (("min", np.min), ("max", np.max), ("mean", np.mean), ("std", np.std)):
            expected = function(values, axis=axes)
            assert np.allclose(np.ravel(stats[name][key]), expected, atol=1e-6), (name, key)
    assert np.shape(stats["observation.images.front"]["mean"]) == (3, 1, 1)


def test_without_our_files_it_is_a_dataset_of_others(exported, tmp_path):
    path = Path(shutil.copytree(exported, tmp_path / "foreign"))
    (path / "meta" / "robot_rl.json").unlink()
    reader = LeRobotReader(path, action_scale=2.0)
    assert reader.metadata == {"task": "insert", "imported_from": reader.path.name}
    for whole, read in zip(EPISODES, reader.episodes(), strict=True):
        assert np.array_equal(read.action, whole.action / 2)
        assert np.array_equal(read.reward, whole.reward)
        front = read.observations["images/front"]
        assert np.array_equal(front[:-1], whole.observations["images/front"][:-1])
        assert np.array_equal(front[-1], front[-2])
        assert read.metadata["final_observation"] == "repeated"
        assert read.terminated[-1] != read.truncated[-1]
        assert np.diff(read.stamp_obs).tolist() == [10**8] * len(whole)
        assert set(read.source) == {Source.HUMAN}
    with pytest.raises(DataError, match=r"feature action of episode 0: up to .*--action-scale"):
        list(LeRobotReader(path, action_scale=0.01).episodes())


def foreign(exported, path, change):
    """A dataset of others, each of whose data files is changed."""
    shutil.copytree(exported, path)
    (path / "meta" / "robot_rl.json").unlink()
    for number, file in enumerate(sorted((path / "data").rglob("*.parquet"))):
        pq.write_table(change(number, pq.read_table(file)), file)
    return path


def test_success_of_a_dense_reward_is_what_the_dataset_tells(exported, tmp_path):
    """The datasets of PushT, e.g., reward every step by the overlap, also in failures, and have `next.success`."""

    def dense(number, table):
        last = np.arange(table.num_rows) == table.num_rows - 1
        table = table.drop_columns("next.reward").append_column("next.reward", pa.array(0.3 + 0.0 * last))
        return table.append_column("next.success", pa.array(last & (number == 0)))

    read = list(LeRobotReader(foreign(exported, tmp_path / "dense", dense)).episodes())
    assert [one.facts.success for one in read] == [True, False, False]
    assert [(bool(one.terminated[-1]), bool(one.truncated[-1])) for one in read] == [(True, False)] + [
        (False, True)
    ] * 2


def test_a_dataset_of_several_tasks_keeps_them(exported, tmp_path):
    path = foreign(exported, tmp_path / "several", lambda _, table: table)
    file = path / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    table, told = pq.read_table(file), [["push"], ["lift"], ["push"]]
    pq.write_table(table.drop_columns("tasks").append_column("tasks", pa.array(told)), file)
    reader = LeRobotReader(path)
    with EpisodeStore.create(tmp_path / "store", reader.metadata) as store:
        for episode in reader.episodes():
            store.append(episode)
        export_lerobot(store, tmp_path / "again")
        export_lerobot(store, tmp_path / "one", task="move it")
    again = tmp_path / "again"
    assert pq.read_table(again / "meta" / "tasks.parquet").to_pylist() == [
        {"task_index": 0, "task": "push"}, {"task_index": 1, "task": "lift"},
    ]  # fmt: skip
    assert json.loads((again / "meta" / "info.json").read_text())["total_tasks"] == 2
    assert pq.read_table(again / "meta" / "episodes").column("tasks").to_pylist() == told
    indices = [set(pq.read_table(one).column("task_index").to_pylist()) for one in sorted(again.glob("data/*/*"))]
    assert indices == [{0}, {1}, {0}]
    assert pq.read_table(tmp_path / "one" / "meta" / "tasks.parquet").column("task").to_pylist() == ["move it"]


def test_a_store_of_no_known_task_has_no_instruction_called_none(tmp_path):
    """As one that was imported from a bag whose mapping names no task."""
    with EpisodeStore.create(tmp_path / "store", {"task": None}) as store:
        store.append(EPISODES[0])
        export_lerobot(store, tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "meta" / "tasks.parquet").column("task").to_pylist() == ["task"]


def test_pictures_with_a_palette_have_colours_and_those_of_16_bits_are_refused(exported, tmp_path):
    def drawn(picture):
        def change(_, table):
            content = io.BytesIO()
            picture.save(content, "png")
            cells = pa.array([{"bytes": content.getvalue(), "path": None}] * table.num_rows)
            return table.drop_columns("observation.images.front").append_column("observation.images.front", cells)

        return change

    colours = Image.fromarray(np.tile(np.array([[200, 10, 90], [7, 80, 255]], np.uint8), (32, 24, 1)))
    path = foreign(exported, tmp_path / "palette", drawn(colours.quantize(2)))
    for one in LeRobotReader(path).episodes():
        assert np.array_equal(one.observations["images/front"][0], np.asarray(colours))
    deep = foreign(exported, tmp_path / "deep", drawn(Image.fromarray(np.full((32, 48), 1000, np.uint16))))
    with pytest.raises(DataError, match=r"observation\.images\.front is I;16, must have 8 bits per channel"):
        list(LeRobotReader(deep).episodes())


def test_what_is_no_dataset_is_refused(exported, tmp_path):
    with pytest.raises(DataError, match="no LeRobotDataset there"):
        LeRobotReader(tmp_path)
    path = Path(shutil.copytree(exported, tmp_path / "old"))
    info = json.loads((path / "meta" / "info.json").read_text())
    (path / "meta" / "info.json").write_text(json.dumps({**info, "codebase_version": "v2.1"}))
    with pytest.raises(DataError, match=r"'v2\.1', this program reads v3\.0"):
        LeRobotReader(path)
    (path / "meta" / "info.json").write_text(json.dumps(info))
    (path / "data" / "chunk-000" / "file-001.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"file-001\.parquet: cannot be read"):
        list(LeRobotReader(path).episodes())


def test_what_describes_the_scene_is_a_feature_of_its_own(store, exported, tmp_path):
    out = tmp_path / "scene"
    export_lerobot(store, out, scene=["state/b"])
    features, before = (json.loads((path / "meta" / "info.json").read_text())["features"] for path in (out, exported))
    state, scene = features["observation.state"], features["observation.environment_state"]
    assert scene["names"] == ["state/b.0", "state/b.1"]
    assert set(state["names"]) | set(scene["names"]) == set(before["observation.state"]["names"])
    for one, other in zip(LeRobotReader(out).episodes(), EPISODES, strict=True):
        np.testing.assert_array_equal(one.observations["state/b"], other.observations["state/b"])
        np.testing.assert_array_equal(one.observations["state/a"], other.observations["state/a"])
    with pytest.raises(DataError, match=r"no vector state/c; valid: state/a, state/b"):
        export_lerobot(store, tmp_path / "none", scene=["state/c"])


def test_only_what_succeeded_is_exported_for_imitation(store, tmp_path):
    answer = export_lerobot(store, tmp_path / "good", successes=True)
    assert (answer["episodes"], answer["frames"]) == (1, 7)
    assert [one.episode_id for one in LeRobotReader(tmp_path / "good").episodes()] == ["episode-0"]
    with EpisodeStore.create(tmp_path / "corrected") as corrected:
        for whole in EPISODES:
            corrected.append(whole)
        label_episode(corrected.path, "episode-0", False, "a person")
        label_episode(corrected.path, "episode-2", True, "a person")
        assert export_lerobot(corrected, tmp_path / "right", successes=True)["episodes"] == 1
    assert [one.episode_id for one in LeRobotReader(tmp_path / "right").episodes()] == ["episode-2"]
    with EpisodeStore.create(tmp_path / "bad") as bad:
        bad.append(valid(0, 3, end="truncated"))
        with pytest.raises(DataError, match="none of its 1 succeeded"):
            export_lerobot(bad, tmp_path / "nothing", successes=True)


def test_what_cannot_be_exported_is_refused(store, exported, tmp_path):
    with pytest.raises(RunDirectoryError, match="not empty"):
        export_lerobot(store, exported)
    with EpisodeStore.create(tmp_path / "empty") as empty, pytest.raises(DataError, match="no episodes to export"):
        export_lerobot(empty, tmp_path / "out")
    with EpisodeStore.create(tmp_path / "mixed") as mixed:
        mixed.append(valid(0, 3))
        mixed.append(valid(1, 3, image_shape=(4, 4, 3)))
        with pytest.raises(DataError, match="episode episode-1: its observations differ"):
            export_lerobot(mixed, tmp_path / "mixed-out", fps=10)


def at_rate(number, hertz):
    stamps = (np.arange(9) * 1e9 / hertz).astype(np.int64)
    return dataclasses.replace(valid(number, 8), stamp_obs=stamps, stamp_action=stamps[:-1] + 10**6)


def test_a_dataset_has_one_rate_and_scatter_of_the_clock_is_none(tmp_path):
    with EpisodeStore.create(tmp_path / "near") as near:
        near.append(at_rate(0, 9.93))
        near.append(at_rate(1, 10.1))
        assert export_lerobot(near, tmp_path / "near-out")["fps"] == 10.0
        assert json.loads((tmp_path / "near-out/meta/info.json").read_text())["fps"] == 10
    with EpisodeStore.create(tmp_path / "two") as two:
        two.append(at_rate(0, 7.5))
        two.append(at_rate(1, 20))
        with pytest.raises(DataError, match=r"episode-1: 20 steps a second, the first one 7\.5; .* --fps"):
            export_lerobot(two, tmp_path / "two-out")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["near", "near-out", "two"], "half a dataset is none"
        assert export_lerobot(two, tmp_path / "two-out", fps=20)["fps"] == 20


def interpreter_with_lerobot():
    """This one or that in ROBOT_RL_LEROBOT_PYTHON: lerobot 0.4 needs an older torch and av than we do."""
    python = os.environ.get("ROBOT_RL_LEROBOT_PYTHON", sys.executable)
    done = subprocess.run(
        [python, "-c", "import lerobot.datasets.lerobot_dataset"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["?"])[-1]
        pytest.skip(f"{python} has no lerobot ({reason}); set ROBOT_RL_LEROBOT_PYTHON to an interpreter that has it")
    return python


def test_lerobots_own_loader_gives_equal_values(exported, tmp_path):
    python = interpreter_with_lerobot()
    command = [python, str(Path(__file__).with_name("lerobot_reader.py")), str(exported), str(tmp_path / "read.npz")]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=offline)
    assert done.returncode == 0, done.stderr
    read = np.load(tmp_path / "read.npz")
    assert (read["lengths"].tolist(), set(read["tasks"]), float(read["fps"])) == ([7, 1, 4], {"insert"}, 10.0)

    def joined(column):
        return np.concatenate([column(whole)[: len(whole)] for whole in EPISODES])

    expected = {
        "action": joined(lambda e: e.action),
        "next.reward": joined(lambda e: e.reward),
        "next.terminated": joined(lambda e: e.terminated),
        "next.truncated": joined(lambda e: e.truncated),
        "complementary_info.source": joined(lambda e: e.source),
        "complementary_info.stamp_action": joined(lambda e: e.stamp_action),
        "observation.double": joined(lambda e: e.observations["state/double"]).astype(np.float32),
        "observation.flag": joined(lambda e: e.observations["state/flag"]),
        "frame_index": joined(lambda e: np.arange(len(e))),
        "timestamp": joined(lambda e: np.arange(len(e), dtype=np.float32) / 10),
    }
    for name, values in expected.items():
        assert np.array_equal(read[name], values), name
    names = json.loads((exported / "meta" / "info.json").read_text())["features"]["observation.state"]["names"]
    state = read["observation.state"]
    assert np.array_equal(state[:, names.index("state/a.0")], joined(lambda e: e.observations["state/a"])[:, 0])
    assert np.array_equal(
        state[:, names.index("state/matrix.2")], joined(lambda e: e.observations["state/matrix"])[:, 1, 0]
    )
    frames = np.moveaxis(read["observation.images.front"], 1, -1)
    assert np.array_equal(np.round(frames * 255), joined(lambda e: e.observations["images/front"]))
