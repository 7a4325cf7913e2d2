import dataclasses

import numpy as np
import pytest
from tagged import assert_same, episode

from robot_rl.data.store.operator_labels import rewarded_episodes
from robot_rl.data.store.reward_overlays import OverlayWriter, overlay_names
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError, RunDirectoryError

VLM = {"model": "judge", "prompt": "was the peg in the hole?", "temperature": 0.0}


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.create(tmp_path / "episodes") as made:
        made.append(episode(0, 4))
        made.append(episode(1, 3))
        yield made


def label(store, number=0, name="vlm", reward=(0, 0.25, 0.5, 1)):
    with OverlayWriter(store.path, name, VLM) as writer:
        one = store.read(f"episode-{number}")
        writer.write(one, store.fingerprint(one.episode_id), np.array(reward))


def test_readers_choose_and_the_recorded_column_stays(store):
    before = {path.name: path.read_bytes() for path in (store.path / "episodes").iterdir()}
    label(store)  # while the store is open for writing
    reader = EpisodeStore.open(store.path)
    assert_same(reader.read("episode-0"), episode(0, 4))
    judged = reader.read("episode-0", rewards="vlm")
    expected = dataclasses.replace(episode(0, 4), reward=np.array([0, 0.25, 0.5, 1], np.float32), reward_source="vlm")
    assert_same(judged, expected)
    assert {path.name: path.read_bytes() for path in (store.path / "episodes").iterdir()} == before
    with pytest.raises(DataError, match="no overlay 'vlm' for this episode; it has none"):
        reader.read("episode-1", rewards="vlm")
    with pytest.raises(DataError, match=r"no overlay 'human' for this episode; it has \['vlm'\]"):
        list(reader.episodes(rewards="human"))


def test_labels_are_not_rewritten_but_a_second_opinion_is_welcome(store):
    label(store)
    with pytest.raises(DataError, match="'vlm' has labelled episode-0 already; label under another name"):
        label(store)
    label(store, name="vlm-2", reward=[1, 1, 1, 1])
    assert overlay_names(store.path) == ["vlm", "vlm-2"]
    assert store.read("episode-0", rewards="vlm-2").reward.tolist() == [1, 1, 1, 1]
    assert store.read("episode-0", rewards="vlm").reward.tolist() == [0, 0.25, 0.5, 1]


def test_another_recording_under_the_same_id_does_not_inherit_labels(store):
    label(store, number=1, reward=[1, 2, 3])
    store.set_aside(["episode-1"], "played again")
    store.append(dataclasses.replace(episode(1, 3), reward=np.zeros(3, np.float32)))
    with pytest.raises(DataError, match="no overlay 'vlm'"):
        store.read("episode-1", rewards="vlm")


@pytest.mark.parametrize(
    ("reward", "message"),
    [([1, 2], r"rewards of shape \(2,\), expected \(4,\)"), ([1, 2, np.nan, 4], "reward has a NaN or an infinity")],
)
def test_rewards_that_do_not_fit_are_refused(reward, message, store):
    with pytest.raises(DataError, match=message):
        label(store, reward=reward)
    assert list((store.path / "overlays" / "vlm").glob("*.zip")) == []


def test_names_provenance_and_a_second_labeller(store):
    with pytest.raises(DataError, match="lower-case letters"):
        OverlayWriter(store.path, "../vlm", VLM)
    with pytest.raises(DataError, match="provenance must be JSON values"):
        OverlayWriter(store.path, "vlm", {"model": object()})
    first = OverlayWriter(store.path, "vlm", VLM)
    with pytest.raises(RunDirectoryError, match="in use by process"):
        OverlayWriter(store.path, "vlm", VLM)
    OverlayWriter(store.path, "other", VLM).close()
    first.close()
    with pytest.raises(RunDirectoryError, match="closed"):
        first.write(episode(0, 4), "x", np.zeros(4))


def test_damage_is_never_read_as_a_label(store):
    label(store)
    (path,) = (store.path / "overlays" / "vlm").glob("*.zip")
    content, expected, errors = path.read_bytes(), store.read("episode-0", rewards="vlm"), 0
    for place in range(0, len(content), 2):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place // 2 % 8)
        path.write_bytes(damaged)
        try:
            assert_same(store.read("episode-0", rewards="vlm"), expected)
        except DataError as error:
            assert str(path) in str(error)
            errors += 1
    assert errors > len(content) / 4


@pytest.mark.parametrize("terminated", [True, False])
def test_who_gives_rewards_may_also_say_whether_the_task_was_over(terminated, store):
    one = store.read("episode-0")
    with OverlayWriter(store.path, "judge", VLM) as writer:
        writer.write(one, store.fingerprint(one.episode_id), np.zeros(4), terminated=terminated)
    judged = store.read("episode-0", rewards="judge")
    assert judged.terminated.tolist() == [False, False, False, terminated]
    assert judged.truncated.tolist() == [False, False, False, not terminated]
    assert store.read("episode-0").terminated.tolist() == one.terminated.tolist()


def test_which_episodes_have_rewards(store):
    label(store, number=1, reward=[1, 2, 3])
    assert rewarded_episodes(store, "vlm") == ["episode-1"]
    assert rewarded_episodes(store, None) == ["episode-0", "episode-1"]
    with pytest.raises(DataError, match=r"no rewards 'human'; there are: vlm"):
        rewarded_episodes(store, "human")


def test_what_has_to_be_whole_is_seen_once_it_is_finished(store):
    folder = store.path / "overlays"
    marks = {one.episode_id: store.fingerprint(one.episode_id) for one in store.episodes()}
    with OverlayWriter(store.path, "vlm", VLM, whole=True) as writer:
        writer.write(store.read("episode-0"), marks["episode-0"], np.zeros(4))
        assert overlay_names(store.path) == []
        with pytest.raises(RunDirectoryError, match="in use by process"):
            OverlayWriter(store.path, "vlm", VLM, whole=True)
    assert list(folder.iterdir()) == [], "given up"
    OverlayWriter(store.path, "vlm", VLM).close()  # leaves its lock
    with OverlayWriter(store.path, "vlm", VLM, whole=True) as writer:
        writer.write(store.read("episode-1"), marks["episode-1"], np.zeros(3))
        writer.finish()
        assert rewarded_episodes(store, "vlm") == ["episode-1"]
    with pytest.raises(RunDirectoryError, match="closed"):
        writer.finish()
    with pytest.raises(DataError, match="'vlm' has labelled episodes already; label under another name, or, if it is"):
        OverlayWriter(store.path, "vlm", VLM, whole=True)
