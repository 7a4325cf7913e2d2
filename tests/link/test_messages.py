import contextlib
import pickle
import struct

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.errors import LinkError
from robot_rl.link.messages import (
    KINDS,
    PROTOCOL,
    ActorHello,
    Demonstration,
    EpisodeLabel,
    EpisodePart,
    EpisodeRewards,
    EpisodesLearned,
    Failure,
    Hindsight,
    LearnerReady,
    Logs,
    Parameters,
    Pretrain,
    RankHello,
    RobotAccepted,
    RobotBeat,
    RobotFinished,
    RobotHello,
    RobotRefused,
    Start,
    StatePart,
    StateRequest,
    StepTaken,
    Stop,
    UpdateProgress,
    decode,
    encode,
)
from robot_rl.system.message_codec import MAX_MESSAGE

DTYPES = st.sampled_from(["?", "<i1", "<u1", "<i4", "<i8", "<f4", "<f8"]).map(np.dtype)
ARRAYS = DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)))
COUNTS = st.integers(0, 2**63 - 1)
FLOATS = st.floats()
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | FLOATS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
SECTIONS = st.dictionaries(st.text(), PLAIN)

PERCEPTS = st.builds(Percept, state=ARRAYS, images=st.none() | ARRAYS, potential=FLOATS)
STEPS = st.builds(
    Transition,
    action=ARRAYS,
    reward=FLOATS,
    terminated=st.booleans(),
    truncated=st.booleans(),
    source=st.integers(0, 127),
    undecided=st.booleans(),
)

ONE_OF_EACH = st.one_of(
    st.builds(ActorHello, config=SECTIONS, task=SECTIONS, percepts=SECTIONS, fingerprint=st.text()),
    st.builds(LearnerReady, fingerprint=st.text()),
    st.builds(Demonstration, percepts=st.lists(PERCEPTS, min_size=1, max_size=3), steps=st.lists(STEPS, max_size=3)),
    st.builds(Pretrain, updates=st.integers(1, 2**63 - 1)),
    st.builds(Start, percept=PERCEPTS, episode_id=st.text()),
    st.builds(StepTaken, number=COUNTS, step=STEPS, percept=PERCEPTS),
    st.builds(EpisodeLabel, episode_id=st.text(), success=st.booleans()),
    st.builds(EpisodeRewards, episode_id=st.text(), closeness=ARRAYS),
    st.builds(Hindsight, rows=st.builds(Relabelled, *[ARRAYS] * 5)),
    st.builds(Parameters, updates=COUNTS, arrays=st.dictionaries(st.text(), ARRAYS)),
    st.builds(UpdateProgress, env_steps=COUNTS, updates=COUNTS, update_to_data=FLOATS, offline_updates=COUNTS),
    st.builds(Logs, values=st.dictionaries(st.text(), FLOATS)),
    st.builds(StateRequest),
    st.builds(StatePart, index=COUNTS, count=st.integers(1, 2**63 - 1), content=st.binary()),
    st.builds(Stop),
    st.builds(Failure, error=st.text(), text=st.text()),
    st.builds(
        RobotHello,
        robot=st.text(),
        session=COUNTS,
        version=st.text(),
        config=SECTIONS,
        task=SECTIONS,
        percepts=SECTIONS,
    ),
    st.builds(
        RankHello,
        config=SECTIONS,
        task=SECTIONS,
        percepts=SECTIONS,
        fingerprint=st.text(),
        robots=st.none() | st.just({"a": 1.0, "b": 2.5}),
        rank=st.integers(1, 100),
        meeting=st.text(),
    ),
    st.builds(RobotAccepted, episodes=COUNTS, fingerprint=st.text()),
    st.builds(
        EpisodePart,
        place=COUNTS,
        episode_id=st.text(),
        fingerprint=st.text(),
        demonstration=st.booleans(),
        length=st.integers(1, 2**63 - 1),
        first=COUNTS,
        percepts=st.lists(PERCEPTS, max_size=3),
        steps=st.lists(STEPS, max_size=3),
    ),
    st.builds(EpisodesLearned, learned=COUNTS, saved=COUNTS, finished=st.booleans()),
    st.builds(RobotBeat, waiting=COUNTS),
    st.builds(RobotFinished, episodes=COUNTS),
    st.builds(RobotRefused, text=st.text(), final=st.booleans()),
)

STEP = StepTaken(
    number=7,
    step=Transition(np.array([0.5, -0.5], np.float32), 1.0, True, False, 1),
    percept=Percept(np.arange(3, dtype=np.float32)),
)


def same(one, other):
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)


def envelope(kind="StepTaken", version=PROTOCOL, **fields):
    return msgpack.packb([version, kind, fields])


def array(dtype=5, shape=(2,), content=bytes(8)):
    """The extension of an array, with anything in its head."""
    head = struct.pack("<BB", dtype, len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
    return msgpack.ExtType(1, head + content)


@given(ONE_OF_EACH)
def test_a_message_comes_out_as_it_went_in(message):
    received = decode(encode(message))
    assert type(received) is type(message)
    assert same(vars(received), vars(message))


def test_each_kind_is_tried():
    assert {
        cls.__name__ for cls in (type(STEP), ActorHello, LearnerReady, Demonstration, Start, Parameters, UpdateProgress)
    } | {
        cls.__name__
        for cls in (Pretrain, EpisodeLabel, EpisodeRewards, Hindsight, Logs, StateRequest, StatePart, Stop, Failure)
    } | {
        cls.__name__
        for cls in (
            RankHello,
            RobotHello,
            RobotAccepted,
            EpisodePart,
            EpisodesLearned,
            RobotBeat,
            RobotFinished,
            RobotRefused,
        )
    } == set(KINDS)


@pytest.mark.parametrize("layout", ["big-endian", "strided", "read-only"])
def test_arrays_cross_whatever_their_layout_and_can_be_written_to(layout):
    values = np.arange(6, dtype=">f4").astype(">f4").reshape(2, 3)
    sent = {
        "big-endian": values,
        "strided": values.astype("<f4").T,
        "read-only": np.frombuffer(values.tobytes(), ">f4"),
    }[layout]
    row = decode(encode(Start(percept=Percept(sent)))).percept.state
    assert row.dtype == np.float32
    np.testing.assert_array_equal(row, sent)
    row[...] = 0


@given(st.binary(max_size=300))
@example(b"")
@example(pickle.dumps({"a": 1}))
@example(b"\xdd\xff\xff\xff\xff")  # a list of four thousand million entries
@example(b"\x91" * 5000)  # lists in lists
def test_garbage_is_refused(content):
    with pytest.raises(LinkError, match=r"malformed message|protocol version"):
        decode(content)


@given(ONE_OF_EACH, st.data())
def test_a_message_cut_short_is_refused(message, data):
    content = encode(message)
    end = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(LinkError, match="malformed message"):
        decode(content[:end])


@given(ONE_OF_EACH, st.data())
def test_altered_bytes_make_another_message_or_a_link_error(message, data):
    content = bytearray(encode(message))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(LinkError):  # and nothing else is raised
        decode(bytes(content))


@pytest.mark.parametrize("version", [0, PROTOCOL + 1])
def test_another_protocol_version_is_named_even_if_the_rest_is_unknown(version):
    with pytest.raises(LinkError, match=rf"version {version}, this program {PROTOCOL}; run the same robot_rl"):
        decode(msgpack.packb([version, {"something": "else"}]))


def test_an_unknown_kind_lists_the_known_ones():
    with pytest.raises(LinkError, match=r"unknown message 'Reboot'; valid: ActorHello, LearnerReady, .*, Failure"):
        decode(envelope("Reboot"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (envelope("LearnerReady"), "message LearnerReady: fingerprint: Field required"),
        (envelope("Stop", now=True), "message Stop: now: Unexpected"),
        (envelope("LearnerReady", fingerprint=1), "fingerprint: .* valid string"),
        (envelope("UpdateProgress", env_steps=-1, updates=0, update_to_data=0.0), "env_steps: .* greater"),
        (envelope("UpdateProgress", env_steps=True, updates=0, update_to_data=0.0), "env_steps: .* valid integer"),
        (envelope("Logs", values={"q": "high"}), "values.q: .* valid number"),
        (envelope("Start", percept=[[1.0, 2.0]]), "percept.0: .* ndarray"),
        (envelope("Start", percept=[msgpack.ExtType(2, b"")]), "extension 2 is unknown"),
        (envelope("Start", percept=[msgpack.ExtType(1, b"\x05")]), "cut short"),
        (envelope("Start", percept=[array(dtype=99)]), "dtype number 99"),
        (envelope("Start", percept=[array(shape=(1,) * 9, content=bytes(4))]), "9 dimensions"),
        (envelope("Start", percept=[array(shape=(3,))]), r"an array \(3,\) of float32 in 8 bytes"),
        (envelope("Start", percept=[array(shape=(2**62, 2**62))]), "in 8 bytes"),
        (envelope("Start", percept=[array(shape=(0, 2**63), content=b"")]), "malformed message: an array"),
        (msgpack.packb([PROTOCOL, "Stop"]), "expected version, kind and fields"),
        (msgpack.packb({"kind": "Stop"}), "does not start with a protocol version"),
    ],
)
def test_what_is_malformed_is_said(content, words):
    with pytest.raises(LinkError, match=words):
        decode(content)


@pytest.mark.parametrize(
    "bad", [np.array([object()]), np.array([1j]), np.array(["x"]), np.zeros(2, np.int16), np.zeros((1,) * 9)]
)
def test_arrays_that_may_not_cross_are_refused_by_the_sender(bad):
    with pytest.raises(LinkError, match="message Start cannot be sent: an array of"):
        encode(Start(percept=Percept(bad)))


def test_objects_may_not_cross():
    with pytest.raises(LinkError, match="message ActorHello cannot be sent: a type has no encoding"):
        encode(ActorHello(config={"x": type}, task={}, percepts={}, fingerprint=""))


def test_neither_side_takes_a_message_that_is_too_large():
    with pytest.raises(LinkError, match=rf"message StatePart has \d+ bytes, allowed are {MAX_MESSAGE}"):
        encode(StatePart(index=0, count=1, content=bytes(MAX_MESSAGE)))
    with pytest.raises(LinkError, match=rf"has {MAX_MESSAGE + 1} bytes, allowed are {MAX_MESSAGE}"):
        decode(bytes(MAX_MESSAGE + 1))
