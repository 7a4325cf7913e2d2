import numpy as np
import pytest
import torch

from robot_rl.errors import CheckpointError, LinkError
from robot_rl.link.messages import StatePart, decode, encode
from robot_rl.link.state_transfer import MAX_PARTS, CheckpointAssembler, cut

STATE = {"big": 2**100, "tuple": (0.9, 0.999), "array": np.arange(1000), "tensor": torch.randn(9), "step": 3}


def parts(size=700):
    return list(cut(STATE, size))


def test_a_state_crosses_in_parts():
    assembler = CheckpointAssembler()
    pieces = parts()
    assert len(pieces) > 5
    for _ in range(2):  # an assembler can be used again
        *none, state = [assembler.add(decode(encode(part))) for part in pieces]
        assert none == [None] * (len(pieces) - 1)
        assert state.keys() == STATE.keys()
        assert (state["big"], state["tuple"], state["step"]) == (2**100, (0.9, 0.999), 3)
        np.testing.assert_array_equal(state["array"], STATE["array"])
        assert torch.equal(state["tensor"], STATE["tensor"])


@pytest.mark.parametrize("order", [[1], [0, 2], [0, 0]])
def test_parts_that_are_missing_or_come_twice_are_noticed(order):
    assembler, pieces = CheckpointAssembler(), parts()
    *first, last = [pieces[index] for index in order]
    for part in first:
        assembler.add(part)
    with pytest.raises(LinkError, match=rf"part {last.index} of {len(pieces)} of a state cannot follow {len(first)}"):
        assembler.add(last)


def test_a_damaged_state_is_noticed():
    assembler = CheckpointAssembler()
    *first, last = parts()
    for part in first:
        assembler.add(part)
    damaged = StatePart(index=last.index, count=last.count, content=last.content[:-1] + bytes([last.content[-1] ^ 1]))
    with pytest.raises(CheckpointError, match="the learner's state: altered since it was written"):
        assembler.add(damaged)


def test_a_state_has_a_largest_size():
    with pytest.raises(LinkError, match=r"the learner's state has .* bytes, allowed are 2048"):
        list(cut(STATE, 1))
    with pytest.raises(LinkError, match="at most 2048 are allowed"):
        CheckpointAssembler().add(StatePart(index=0, count=MAX_PARTS + 1, content=b""))
