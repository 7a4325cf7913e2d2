import pytest

from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.preference.pairs import Preference, combine_orders


def clip(name, row=3):
    return {"episode_id": name, "rows": [row]}


def label(first, second, value):
    answer = Answer(Status.OK, (value,)) if isinstance(value, float) else Answer(value)
    return Label("k", (clip(first), clip(second)), answer, "")


@pytest.mark.parametrize(
    ("there", "back", "value", "flipped"),
    [
        (1.0, 0.0, 1.0, False),
        (0.0, 1.0, 0.0, False),
        (1.0, 1.0, 0.5, True),
        (0.0, 0.0, 0.5, True),
        (0.5, 0.5, 0.5, False),
        (1.0, 0.5, 0.5, False),
    ],
)
def test_both_orders_make_one_preference(there, back, value, flipped):
    found = combine_orders([label("a", "b", there), label("b", "a", back)])
    assert found.pairs == (Preference(("a", 3), ("b", 3), value, flipped),)
    assert found.flip_rate == float(flipped)


def test_a_position_bias_prefers_nothing():
    names = "abcdef"
    labels = [label(x, y, 1.0) for x in names for y in names if x != y]
    found = combine_orders(labels)
    assert len(found.pairs) == 15
    assert {pair.value for pair in found.pairs} == {0.5}
    assert found.flip_rate == 1.0


@pytest.mark.parametrize("status", [Status.UNSURE, Status.UNPARSABLE, Status.REFUSED])
def test_what_could_not_be_read_is_skipped_and_counted(status):
    labels = [label("a", "b", 1.0), label("b", "a", status), label("c", "d", 1.0), label("d", "c", 0.0)]
    labels.append(label("e", "f", 1.0))
    found = combine_orders(labels)
    assert [pair.first[0] for pair in found.pairs] == ["c"]
    assert (found.skipped, found.incomplete) == (1, 1)
    assert combine_orders([]).flip_rate is None
