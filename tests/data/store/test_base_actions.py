"""What a base proposed, in stores and journals, beside episodes without one and those of the schema before."""

from dataclasses import replace

import numpy as np
import pytest
from tagged import assert_same, steps, valid

from robot_rl.data.schema import BASE_ACTION, SCHEMA_VERSION, EpisodeBuilder
from robot_rl.data.store.codec import decode, encode
from robot_rl.data.store.journal import JournalWriter, read_journal
from robot_rl.data.store.verify import check_episode
from robot_rl.errors import DataError


@pytest.fixture
def played():
    one = valid(3, 5)
    proposals = np.random.default_rng(0).uniform(-1, 1, (6, 2)).astype(np.float32)
    return replace(one, action_base=proposals)


def test_it_comes_back_from_a_file_apart_from_what_was_observed(played):
    back = decode(encode(played))
    np.testing.assert_array_equal(back.action_base, played.action_base)
    assert_same(back, played)
    assert BASE_ACTION not in back.observations
    np.testing.assert_array_equal(back.seen(4)[BASE_ACTION], played.action_base[4])
    np.testing.assert_array_equal(back.step(2).action_base, played.action_base[2])


def test_one_without_a_base_and_one_of_the_first_schema_are_read():
    for version in (1, SCHEMA_VERSION):
        back = decode(encode(replace(valid(1, 4), schema_version=version)))
        assert (back.action_base, back.schema_version) == (None, version)
        assert BASE_ACTION not in back.seen(0)
    with pytest.raises(DataError, match="schema version 4, this program reads 1, 2 and 3"):
        replace(valid(1, 4), schema_version=4)


def with_base(played):
    return [replace(step, action_base=row) for step, row in zip(steps(played), played.action_base[:-1], strict=True)]


@pytest.mark.parametrize("whole", [True, False])
def test_it_survives_a_killed_recorder(played, tmp_path, whole):
    journal = JournalWriter(tmp_path / "one.journal", played.episode_id, {})
    for step in with_base(played):
        journal.write(step)
    if whole:
        journal.finish(played)
    journal.close()
    back = read_journal(tmp_path / "one.journal").episode()
    np.testing.assert_array_equal(back.action_base, played.action_base[: len(back) + 1])
    assert len(back) == (5 if whole else 4)


def test_a_base_proposes_at_every_step_or_at_none(played, tmp_path):
    journal = JournalWriter(tmp_path / "one.journal", played.episode_id, {})
    first, second, *_ = with_base(played)
    journal.write(first)
    with pytest.raises(DataError, match="a base proposed some of the actions"):
        journal.write(replace(second, action_base=None))
    journal.close()
    builder = EpisodeBuilder(played.episode_id)
    builder.add(first)
    with pytest.raises(DataError, match="the base proposed 1 of 2 actions"):
        builder.finish(played.observation(5), 1)


def test_what_cannot_be_a_proposal_is_refused_or_named(played):
    with pytest.raises(DataError, match="action_base has 5 rows, expected 6"):
        replace(played, action_base=played.action_base[:5])
    with pytest.raises(DataError, match="action_base of shape"):
        replace(played, action_base=np.zeros((6, 3), np.float32))
    with pytest.raises(DataError, match="or not finite"):
        replace(played, action_base=np.full((6, 2), np.nan, np.float32))
    too_much = replace(played, action_base=2 * np.ones((6, 2), np.float32))
    assert ("action_base", "up to 2, must lie in [-1, 1]") in list(check_episode(too_much))
