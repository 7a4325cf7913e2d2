"""What of a store is shown: frames from first to last, pairs in both orders, the same ones each time."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import stamp_of
from scenes import FRAMES, stamped_episode, stamped_store

from robot_rl.config.labelling import FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.labels.units import Units, choose_camera, spaced_rows
from robot_rl.reward.query import QueryKind

PAIRS = LabelConfig(kind="preference", pairs=30, frames=FramesConfig(count=1))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return stamped_store(tmp_path_factory.mktemp("units") / "s", 5)


@given(st.integers(1, 300), st.integers(1, 40))
def test_rows_are_evenly_spaced_from_the_first_to_the_last(steps, count):
    rows = spaced_rows(steps, FramesConfig(count=count))
    assert rows[-1] == steps
    assert list(rows) == sorted(set(rows))
    assert len(rows) == min(count, steps + 1)
    if count > 1:
        assert rows[0] == 0
        gaps = np.diff(rows)
        assert gaps.max() - gaps.min() <= 1 if count <= steps + 1 else set(gaps) == {1}


def test_each_episode_is_a_unit_with_its_own_frames(path):
    with EpisodeStore.open(path) as store:
        units = Units(store, LabelConfig(frames=FramesConfig(count=4)), "push it")
        assert len(units) == len(store)
        for number, unit in enumerate(units):
            query = unit.query()
            (clip,) = query.clips
            assert (query.kind, query.task, query.subject) == (QueryKind.SUCCESS, "push it", unit.subject)
            assert [stamp_of(frame) for frame in clip.frames] == [number * FRAMES + row for row in clip.rows]
            assert clip.rows[-1] == 9 + number
            assert clip.fingerprint == store.fingerprint(clip.episode_id)


def test_only_the_episodes_that_are_named_are_shown(path):
    with EpisodeStore.open(path) as store:
        names = store.ids()[1:3]
        units = Units(store, LabelConfig(), "push it", only=names)
        assert [json.loads(unit.subject)[0]["episode_id"] for unit in units] == names


def test_a_beginning_ends_where_it_says_and_is_a_subject_of_its_own(path):
    with EpisodeStore.open(path) as store:
        units = Units(store, LabelConfig(frames=FramesConfig(count=3)), "push it")
        name = store.ids()[0]
        beginnings = [units.beginning(name, steps) for steps in range(1, 10)]
        assert [unit.query().clips[0].rows[-1] for unit in beginnings] == list(range(1, 10))
        assert beginnings[-1].subject == next(iter(units)).subject
        assert len({unit.subject for unit in beginnings}) == 9


def test_each_pair_comes_in_both_orders_and_its_two_moments_differ(path):
    with EpisodeStore.open(path) as store:
        units = list(Units(store, PAIRS, "push it"))
        assert len(units) == 2 * PAIRS.pairs == len(Units(store, PAIRS, "push it"))
        for there, back in zip(units[::2], units[1::2], strict=True):
            first, second = json.loads(there.subject)
            assert json.loads(back.subject) == [second, first]
            assert first != second
        for clip in units[0].query().clips:
            number = int(clip.episode_id.removeprefix("episode-"))
            assert stamp_of(clip.frames[0]) == number * FRAMES + clip.rows[0]


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0.0, 0.3), (0.5, 0.35, 0.8), (1.0, 1.0, 1.0)])
def test_as_many_moments_are_ends_of_episodes_as_wanted(path, share, least, most):
    settings = LabelConfig(kind="preference", pairs=100, pair_ends=share, frames=FramesConfig(count=1))
    with EpisodeStore.open(path) as store:
        lengths = {row.episode_id: row.length for row in store.summaries()}
        clips = [clip for unit in Units(store, settings, "push it") for clip in json.loads(unit.subject)]
    ends = np.mean([clip["rows"] == [lengths[clip["episode_id"]]] for clip in clips])
    assert least <= ends <= most


def test_the_seed_decides_which_pairs_and_nothing_else(path):
    def subjects(seed):
        with EpisodeStore.open(path) as store:
            settings = LabelConfig(kind="preference", pairs=10, seed=seed, frames=FramesConfig(count=1))
            return [unit.subject for unit in Units(store, settings, "push it")]

    assert subjects(0) == subjects(0) != subjects(1)


def test_the_camera_is_the_only_one_or_has_to_be_named():
    one = stamped_episode(0)
    assert choose_camera(one, "") == choose_camera(one, "front") == "front"
    one.observations["images/wrist"] = one.observations["images/front"]
    assert choose_camera(one, "wrist") == "wrist"
    with pytest.raises(DataError, match=r"has several cameras; set frames\.camera to one of front, wrist"):
        choose_camera(one, "")
    with pytest.raises(DataError, match="has no camera 'top'"):
        choose_camera(one, "top")
    blind = {key: column for key, column in one.observations.items() if not key.startswith("images/")}
    one.observations.clear()
    one.observations.update(blind)
    with pytest.raises(DataError, match="has no frames"):
        choose_camera(one, "")


def test_an_empty_store_has_nothing_to_label(tmp_path):
    with (
        EpisodeStore.create(tmp_path / "s", {"task": "push"}) as store,
        pytest.raises(DataError, match="holds no episodes"),
    ):
        Units(store, LabelConfig(), "push it")
