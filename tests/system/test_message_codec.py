"""Messages on a byte stream; what the fields of a message may be is tested with the link's messages."""

import io

import numpy as np
import pytest
from pydantic.dataclasses import dataclass

from robot_rl.errors import LinkError
from robot_rl.system.message_codec import MESSAGE, MessageCodec


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Sample:
    name: str
    values: np.ndarray


@dataclass(frozen=True, config=MESSAGE)
class Done:
    pass


CODEC = MessageCodec(1, (Sample, Done))


def written(*messages):
    stream = io.BytesIO()
    for message in messages:
        CODEC.write(stream, message)
    return stream.getvalue()


def test_a_stream_gives_the_messages_in_order_and_then_none():
    stream = io.BytesIO(written(Sample("a", np.arange(3)), Done()))
    first = CODEC.read(stream)
    assert (first.name, first.values.tolist()) == ("a", [0, 1, 2])
    assert isinstance(CODEC.read(stream), Done)
    assert CODEC.read(stream) is None


def test_a_stream_that_is_cut_short_anywhere_is_an_error():
    content = written(Sample("a", np.arange(3)))
    for size in range(1, len(content)):
        with pytest.raises(LinkError, match="in the middle of a message"):
            CODEC.read(io.BytesIO(content[:size]))


def test_a_size_beyond_the_limit_is_refused_before_anything_is_read():
    with pytest.raises(LinkError, match="allowed are"):
        CODEC.read(io.BytesIO(b"\xff\xff\xff\xff"))


def test_another_version_and_an_unknown_kind_are_refused():
    content = CODEC.encode(Done())
    with pytest.raises(LinkError, match="protocol version 1, this program 2"):
        MessageCodec(2, (Done,)).decode(content)
    with pytest.raises(LinkError, match="unknown message 'Done'; valid: Sample"):
        MessageCodec(1, (Sample,)).decode(content)
