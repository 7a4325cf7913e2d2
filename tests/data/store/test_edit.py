import dataclasses

import numpy as np
import pytest
from tagged import assert_same, valid

from robot_rl.data.store.edit import merge, prune, split
from robot_rl.data.store.operator_labels import EVERY_STEP, label_episode
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError, RunDirectoryError


def store_of(path, *numbers, task="reach", label=None):
    with EpisodeStore.create(path, {"task": task, "seed": 3}) as store:
        for number in numbers:
            store.append(valid(number, 3))
            if number == label:
                with OverlayWriter(path, "vlm", {"model": "judge"}) as writer:
                    writer.write(
                        valid(number, 3), store.fingerprint(f"episode-{number}"), np.arange(3.0), terminated=True
                    )
    return path


def contents(path):
    return {file.name: file.read_bytes() for file in sorted((path / "episodes").iterdir())}


def test_merge_copies_files_byte_for_byte_with_their_labels(tmp_path):
    one, two = store_of(tmp_path / "one", 0, 1), store_of(tmp_path / "two", 5, label=5)
    assert merge([one, two], tmp_path / "both") == 3
    assert [*contents(tmp_path / "both").values()] == [*contents(one).values(), *contents(two).values()]
    with EpisodeStore.open(tmp_path / "both") as store:
        assert store.ids() == ["episode-0", "episode-1", "episode-5"]
        assert store.metadata["task"] == "reach"
        assert [source["seed"] for source in store.metadata["merged_from"]] == [3, 3]
        assert store.read("episode-5", rewards="vlm").reward.tolist() == [0, 1, 2]


def test_merge_refuses_what_does_not_go_together_before_it_writes(tmp_path):
    one, two = store_of(tmp_path / "one", 0, 1), store_of(tmp_path / "two", 1, 2, label=1)
    with pytest.raises(DataError, match=r"one and .*two both hold episode-1; --rename"):
        merge([one, two], tmp_path / "both")
    with pytest.raises(DataError, match="different tasks: peg, reach"):
        merge([one, store_of(tmp_path / "three", 7, task="peg")], tmp_path / "both")
    assert not (tmp_path / "both").exists()
    with pytest.raises(RunDirectoryError, match="already holds an episode store"):
        merge([one], two)
    assert merge([one, two], tmp_path / "both", rename=True) == 4
    with EpisodeStore.open(tmp_path / "both") as store:
        assert store.ids() == ["episode-0", "episode-1", "episode-1@1", "episode-2"]
        renamed = store.read("episode-1@1", rewards="vlm")
        assert renamed.metadata["renamed_from"] == "episode-1"
        assert renamed.reward.tolist() == [0, 1, 2]
        assert renamed.terminated[-1]  # by the labeller
        plain = dataclasses.replace(store.read("episode-1@1"), episode_id="episode-1", metadata=valid(1, 3).metadata)
        assert_same(plain, valid(1, 3))


def test_a_merged_store_remembers_that_every_step_has_a_label(tmp_path):
    """Else one label of a whole episode could replace the labels of all its steps."""
    paths = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
    for number, path in enumerate(paths):
        every = EVERY_STEP if number < 2 else {}
        with EpisodeStore.create(path, {"task": "reach", "seed": number, **every}) as store:
            store.append(valid(number, 3))
    merge(paths[:2], tmp_path / "frames")
    with pytest.raises(DataError, match="every step of these episodes has a label"):
        label_episode(tmp_path / "frames", "episode-0", True, "somebody")
    merge(paths[1:], tmp_path / "mixed")
    with EpisodeStore.open(tmp_path / "frames") as frames, EpisodeStore.open(tmp_path / "mixed") as mixed:
        assert "seed" not in frames.metadata
        assert mixed.metadata.keys() == {"task", "merged_from"}


def test_an_id_made_by_renaming_is_not_taken_twice(tmp_path):
    one = store_of(tmp_path / "one", 0)
    with EpisodeStore.create(tmp_path / "two", {"task": "reach"}) as two:
        two.append(valid(0, 3))
        two.append(dataclasses.replace(valid(1, 3), episode_id="episode-0@1"))
    assert merge([one, tmp_path / "two"], tmp_path / "both", rename=True) == 3
    with EpisodeStore.open(tmp_path / "both") as store:
        assert store.ids() == ["episode-0", "episode-0@1+", "episode-0@1"]
        assert store.read("episode-0@1+").metadata["renamed_from"] == "episode-0"


def test_ids_of_the_greatest_length_are_renamed_as_well(tmp_path):
    longest = dataclasses.replace(valid(0, 3), episode_id=200 * "ä")
    for name in ("one", "two"):
        with EpisodeStore.create(tmp_path / name, {"task": "reach"}) as store:
            store.append(longest)
    assert merge([tmp_path / "one", tmp_path / "two"], tmp_path / "both", rename=True) == 2
    with EpisodeStore.open(tmp_path / "both") as store:
        assert store.ids() == [200 * "ä", 180 * "ä" + "@1"]
        assert store.read(store.ids()[1]).metadata["renamed_from"] == longest.episode_id


def test_what_fails_half_way_leaves_no_store(tmp_path):
    one, two = store_of(tmp_path / "one", 0, 1), store_of(tmp_path / "two", 2, 3)
    damaged = sorted((two / "episodes").iterdir())[-1]
    damaged.write_bytes(damaged.read_bytes()[:-200])
    for attempt in (
        lambda: merge([one, two], tmp_path / "out"),
        lambda: split(two, tmp_path / "out", {"a": 0.5, "b": 0.5}, seed=0),
    ):
        with pytest.raises(DataError):
            attempt()
    assert {entry.name for entry in tmp_path.iterdir()} == {"one", "two"}


def test_split_gives_every_episode_to_one_part_and_follows_the_seed(tmp_path):
    source = store_of(tmp_path / "all", *range(10), label=4)
    before = contents(source)
    counts = split(source, tmp_path / "a", {"train": 0.7, "validation": 0.3}, seed=0)
    assert counts == {"train": 7, "validation": 3}
    parts = {name: contents(tmp_path / "a" / name).values() for name in counts}
    assert sorted([*parts["train"], *parts["validation"]]) == sorted(before.values())
    split(source, tmp_path / "b", {"train": 0.7, "validation": 0.3}, seed=0)
    split(source, tmp_path / "c", {"train": 0.7, "validation": 0.3}, seed=1)
    ids = {folder: EpisodeStore.open(tmp_path / folder / "validation").ids() for folder in "abc"}
    assert ids["a"] == ids["b"] != ids["c"]
    assert contents(source) == before
    with pytest.raises(DataError, match="add up to 1"):
        split(source, tmp_path / "d", {"train": 0.7, "validation": 0.4}, seed=0)


def test_prune_moves_and_deletes_nothing(tmp_path):
    path = store_of(tmp_path / "all", *range(5))
    before = contents(path)
    ids, folder = prune(path, lambda row: row.position % 2 == 1, "odd")
    assert (ids, folder) == (["episode-1", "episode-3"], path / "aside" / "0")
    aside = {file.name: file.read_bytes() for file in folder.glob("*.zip")}
    assert contents(path) | aside == before
    assert prune(path, lambda row: False, "none") == ([], None)
