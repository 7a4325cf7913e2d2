"""What of recorded episodes a base is trained from."""

from dataclasses import replace

import numpy as np
import pytest
import tagged

from robot_rl.data.schema import Source
from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.run.base.lessons import lessons

P, H, S, N = Source.POLICY, Source.HUMAN, Source.SCRIPT, Source.HOLD


def store_of(path, *episodes):
    with EpisodeStore.create(path, {}) as store:
        for one in episodes:
            store.append(one)
    return EpisodeStore.open(path)


def demonstration(number, **options):
    one = tagged.valid(number, 4, sources=[S] * 4, **options)
    return replace(one, metadata={**one.metadata, "demonstration": True})


@pytest.fixture
def store(tmp_path):
    opened = store_of(
        tmp_path / "store",
        demonstration(0),
        tagged.valid(1, 4, sources=[P, P, H, N]),
        tagged.valid(2, 4, sources=[P] * 4),
        tagged.valid(3, 4, sources=[P, H, H, H], end="truncated"),
        demonstration(4, end="truncated"),
    )
    with opened:
        yield opened


def numbers(episodes):
    return [one.metadata["number"] for one in episodes]


def test_demonstrations_are_those_that_are_marked_and_did_not_fail(store, caplog):
    with caplog.at_level("INFO"):
        assert numbers(lessons(store, "demonstrations")) == [0]
    assert caplog.messages == ["1 of 2 demonstrations failed and are left out"]


def test_corrections_are_take_overs_in_episodes_that_succeeded(store):
    learned = list(lessons(store, "corrections"))
    assert numbers(learned) == [0, 1]
    np.testing.assert_array_equal(learned[-1].source, [P, P, H, N])


def test_successes_are_learned_whoever_acted_but_not_where_nobody_did(store):
    learned = list(lessons(store, "successes"))
    assert numbers(learned) == [0, 1, 2]
    np.testing.assert_array_equal([one.source for one in learned], [[S] * 4, [S, S, H, N], [S] * 4])
    recorded = store.read("episode-2")
    np.testing.assert_array_equal(learned[2].action, recorded.action)
    np.testing.assert_array_equal(recorded.source, [P] * 4)


def test_a_store_without_marks_is_demonstrations_altogether(tmp_path):
    with store_of(tmp_path / "s", tagged.valid(5, 3), tagged.valid(6, 3)) as store:
        assert numbers(lessons(store, "demonstrations")) == [5, 6]


def test_of_an_episode_whose_outcome_is_not_known_nothing_is_said(tmp_path):
    unknown = tagged.valid(5, 3, end="truncated")
    with store_of(tmp_path / "s", replace(unknown, metadata={**unknown.metadata, "success": None})) as store:
        assert numbers(lessons(store, "demonstrations")) == [5]


@pytest.mark.parametrize(("wanted", "said"), [("corrections", "take over"), ("successes", "none of its 1 episodes")])
def test_a_store_that_lacks_them_is_refused_with_its_name(tmp_path, wanted, said):
    with store_of(tmp_path / "s", tagged.valid(7, 3, end="truncated")) as store, pytest.raises(DataError, match=said):
        lessons(store, wanted)


def test_what_a_person_called_an_episode_later_counts(store):
    label_episode(store.path, "episode-1", False, "Anna")
    label_episode(store.path, "episode-3", True, "Anna")
    assert numbers(lessons(store, "corrections")) == [0, 3]
    assert numbers(lessons(store, "successes")) == [0, 2, 3]
    label_episode(store.path, "episode-4", True, "Anna")
    label_episode(store.path, "episode-0", False, "Anna")
    assert numbers(lessons(store, "demonstrations")) == [4]
    label_episode(store.path, "episode-4", False, "Anna")
    with pytest.raises(DataError, match="all of its 2 demonstrations failed"):
        lessons(store, "demonstrations")
