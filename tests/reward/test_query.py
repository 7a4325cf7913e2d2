"""Queries and answers: the same content has the same key, and what is not whole is refused."""

import dataclasses
import json
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.query import Clip, Query, QueryKind, canonical

IDENTITY = {"backend": "openai", "model": "m", "temperature": 0.0}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def clip(seed=0, rows=(0, 3), episode="e", camera="front", shape=(4, 6)):
    frames = np.random.default_rng(seed).integers(0, 256, (len(rows), *shape, 3), np.uint8)
    return Clip(episode, f"f-{episode}", camera, tuple(rows), frames)


def query(task="push", **changes):
    return Query(QueryKind.SUCCESS, task, (clip(**changes),))


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.integers(0, 2**31))
def test_canonical_json_depends_on_the_value_and_not_on_the_order_of_its_keys(value, seed):
    keys = list(value)
    np.random.default_rng(seed).shuffle(keys)
    assert canonical({key: value[key] for key in keys}) == canonical(value)
    assert json.loads(canonical(value)) == value


def test_any_mapping_is_as_good_as_a_dictionary_and_other_objects_are_refused():
    assert canonical({"a": MappingProxyType({"b": 1})}) == canonical({"a": {"b": 1}})
    with pytest.raises(TypeError, match="is no JSON value"):
        canonical({"a": np.zeros(2)})


def test_a_key_follows_from_what_is_seen_and_who_answers():
    key = query().key(IDENTITY)
    assert query().key(dict(reversed(IDENTITY.items()))) == key
    assert query(episode="other", rows=(5, 6)).key(IDENTITY) == key, "the same frames of another episode"
    assert query(camera="wrist").key(IDENTITY) == key
    assert query(seed=1).key(IDENTITY) != key
    assert query(task="open").key(IDENTITY) != key
    assert query().key({**IDENTITY, "model": "n"}) != key
    assert dataclasses.replace(query(), kind=QueryKind.PROGRESS).key(IDENTITY) != key


def test_a_key_is_the_one_of_the_revision_before():
    """Labels that were paid for are found again."""
    frames = np.arange(2 * 2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 2, 3)
    one = Query(QueryKind.SUCCESS, "push", (Clip("e", "f", "front", (0, 1), frames),))
    assert one.key({"backend": "x"}) == "96572c9b977d3332abb894467014a33f9c58833723064dc5de55fc2873367647"


def test_frames_of_the_same_bytes_but_another_shape_are_others():
    frames = np.zeros((1, 4, 6, 3), np.uint8)
    one = Clip("e", "f", "front", (0,), frames)
    assert one.digest() != Clip("e", "f", "front", (0,), frames.reshape(1, 6, 4, 3)).digest()
    assert one.digest() == Clip("e", "f", "front", (0,), np.asfortranarray(frames)).digest()


def test_the_subject_names_every_clip_in_its_order():
    pair = Query(QueryKind.PREFERENCE, "push", (clip(rows=(1,)), clip(1, rows=(2,), episode="g")))
    back = Query(QueryKind.PREFERENCE, "push", tuple(reversed(pair.clips)))
    assert json.loads(pair.subject) == [one.subject for one in pair.clips]
    assert pair.subject != back.subject
    assert pair.key(IDENTITY) != back.key(IDENTITY)


@pytest.mark.parametrize(
    ("rows", "frames"),
    [
        ((), np.zeros((0, 4, 4, 3), np.uint8)),
        ((1,), np.zeros((2, 4, 4, 3), np.uint8)),
        ((1,), np.zeros((1, 4, 4, 3), np.float32)),
        ((1,), np.zeros((1, 4, 4), np.uint8)),
        ((1,), np.zeros((1, 4, 4, 4), np.uint8)),
    ],
)
def test_what_are_no_frames_is_refused(rows, frames):
    with pytest.raises(DataError, match="episode e:"):
        Clip("e", "f", "front", rows, frames)


@pytest.mark.parametrize("kind", QueryKind)
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_each_kind_takes_its_number_of_clips(kind, count):
    wanted = 2 if kind is QueryKind.PREFERENCE else 1
    if count == wanted:
        Query(kind, "push", (clip(),) * count)
    else:
        with pytest.raises(DataError, match=f"takes {wanted} clip"):
            Query(kind, "push", (clip(),) * count)


def test_a_query_without_a_task_names_the_setting():
    with pytest.raises(DataError, match="set `task`"):
        query(task="  ")


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("values", [(), (0.5,), (0.1, 0.2)])
def test_an_answer_has_values_exactly_if_it_was_parsed(status, values):
    if bool(values) == (status is Status.OK):
        assert Answer(status, values).values == values
    else:
        with pytest.raises(ValueError, match=status):
            Answer(status, values)
