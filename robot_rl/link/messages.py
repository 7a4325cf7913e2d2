"""What crosses between actor and learner: few kinds of messages, each checked field by field, and no pickle.

On the wire a message is msgpack of [protocol version, kind, fields]. An array is an extension: dtype, shape, bytes.
Whatever does not fit is refused with a `LinkError` that says what was wrong, by the sender as well as by the receiver.

    actor -> learner   Hello, Demonstration, Pretrain, Start, StepTaken, Judged, StateRequest, StatePart (to load),
                       Stop
    learner -> actor   Ready, Parameters, Progress, Logs, StatePart (as requested), Failure
"""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Annotated, Any

import msgpack
import numpy as np
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from robot_rl.errors import LinkError

PROTOCOL = 7
"""Version of this file; both sides must have the same."""

MAX_MESSAGE = 64 * 2**20
"""Largest message [bytes]. Larger things cross in parts."""

_DTYPES = tuple(np.dtype(code) for code in ("?", "<i1", "<u1", "<i4", "<i8", "<f4", "<f8", "<f2"))
_MAX_DIMENSIONS = 8
_ARRAY = 1  # msgpack extension code
_HEAD = struct.Struct("<BB")  # place in _DTYPES, number of dimensions; then the dimensions, then the elements
_STRICT = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)

Count = Annotated[int, Field(ge=0)]
SourceCode = Annotated[int, Field(ge=0, le=127)]


@dataclass(frozen=True, eq=False, config=_STRICT)
class Hello:
    """The first message: what the learner is made of, as plain values.

    Attributes:
        config: The run's configuration.
        task: Its `EnvironmentSpec`.
        percepts: A `PerceptSpec`: what the learner is told of observations.
        fingerprint: Of these three; a learner that reads them differently is of another version.
    """

    config: dict[str, Any]
    task: dict[str, Any]
    percepts: dict[str, Any]
    fingerprint: str


@dataclass(frozen=True, eq=False, config=_STRICT)
class Ready:
    """The learner is made, or has taken over a state. Parameters and progress have been sent before.

    Attributes:
        fingerprint: Of what the learner is made of.
    """

    fingerprint: str


@dataclass(frozen=True, eq=False, config=_STRICT)
class Demonstration:
    """An episode of T steps to be remembered as a demonstration.

    Attributes:
        rows: Packed states, shape (T + 1, n), float32.
        action: Executed, shape (T, m), float32.
        reward: Shape (T,), float32.
        terminated: Shape (T,), bool.
        truncated: Shape (T,), bool.
        source: Shape (T,), int8.
        images: What is kept of the frames, shape (T + 1, ...); None where the policy does not see.
        potential: Of each observation, shape (T + 1,), float32; None where rewards are not shaped.
    """

    rows: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    source: np.ndarray
    images: np.ndarray | None = None
    potential: np.ndarray | None = None


@dataclass(frozen=True, eq=False, config=_STRICT)
class Pretrain:
    """Updates shall be made on the demonstrations alone. `Logs`, `Parameters` and `Progress` are the answer.

    Attributes:
        updates: How many.
    """

    updates: Annotated[int, Field(ge=1)]


@dataclass(frozen=True, eq=False, config=_STRICT)
class Start:
    """An online episode started.

    Attributes:
        row: Its first packed state, shape (n,).
        images: What is kept of its frames, or None.
        episode_id: Its name, for `Judged`.
        potential: Of that observation; 0 where rewards are not shaped.
    """

    row: np.ndarray
    images: np.ndarray | None = None
    episode_id: str = ""
    potential: float = 0.0


@dataclass(frozen=True, eq=False, config=_STRICT)
class StepTaken:
    """An online step.

    Attributes:
        number: Online steps of the run before this one; the learner refuses a step that is missing or comes twice.
        action: Executed, shape (m,).
        reward: Of the step.
        terminated: Success or failure.
        truncated: Cut here.
        source: Who chose the action, a `Source`.
        row: Packed state that it led to, shape (n,).
        images: What is kept of the frames that it led to, or None.
        undecided: Whether a label has yet to say what it is worth.
        potential: Of the observation that it led to; 0 where rewards are not shaped.
    """

    number: Count
    action: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    source: SourceCode
    row: np.ndarray
    images: np.ndarray | None = None
    undecided: bool = False
    potential: float = 0.0


@dataclass(frozen=True, eq=False, config=_STRICT)
class Judged:
    """A label says whether an online episode that has ended succeeded.

    Attributes:
        episode_id: As in its `Start`.
        success: What the label says.
        since: Steps after which it had succeeded; 0: in its last one.
    """

    episode_id: str
    success: bool
    since: Count = 0


@dataclass(frozen=True, eq=False, config=_STRICT)
class Parameters:
    """A policy to act with.

    Attributes:
        updates: Critic updates that it has seen.
        arrays: Its parameters by name.
    """

    updates: Count
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False, config=_STRICT)
class Progress:
    """How far the learner is.

    Attributes:
        env_steps: Online steps received and learned from.
        updates: Critic updates.
        update_to_data: Critic updates per online step since learning started, as measured.
        offline_updates: Those on the demonstrations alone, before.
    """

    env_steps: Count
    updates: Count
    update_to_data: float
    offline_updates: Count = 0


@dataclass(frozen=True, eq=False, config=_STRICT)
class Logs:
    """Mean figures of the last updates, by name."""

    values: dict[str, float]


@dataclass(frozen=True, eq=False, config=_STRICT)
class StateRequest:
    """Asks for newest parameters, then the learner's state, once all that was sent before has been learned from."""


@dataclass(frozen=True, eq=False, config=_STRICT)
class StatePart:
    """A piece of a learner's state. The actor sends them to have a state taken over.

    Attributes:
        index: Position of the piece, from 0.
        count: Number of pieces.
        content: Its bytes; put together they are a checkpoint.
    """

    index: Count
    count: Annotated[int, Field(ge=1)]
    content: bytes


@dataclass(frozen=True, eq=False, config=_STRICT)
class Stop:
    """The learner shall end."""


@dataclass(frozen=True, eq=False, config=_STRICT)
class Failure:
    """The learner has ended by an error.

    Attributes:
        error: Name of its class.
        text: Its sentence.
    """

    error: str
    text: str


Message = (
    Hello
    | Ready
    | Demonstration
    | Pretrain
    | Start
    | StepTaken
    | Judged
    | Parameters
    | Progress
    | Logs
    | StateRequest
    | StatePart
    | Stop
    | Failure
)
KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in Message.__args__}


def encode(message: Message) -> bytes:
    """The bytes of a message.

    Raises:
        LinkError: if it is too large or holds an array, or anything else, that may not cross.
    """
    fields = {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    kind = type(message).__name__
    try:
        content: bytes = msgpack.packb([PROTOCOL, kind, fields], default=_fold)
    except (TypeError, ValueError, OverflowError) as error:
        raise LinkError(f"message {kind} cannot be sent: {error}") from error
    check_size(len(content), f"message {kind}")
    return content


def decode(content: bytes) -> Message:
    """The message that `encode` made these bytes of.

    Raises:
        LinkError: if they are too many, malformed, of another protocol version, or of a kind that does not exist.
    """
    check_size(len(content), "a message")
    try:
        envelope = msgpack.unpackb(content, ext_hook=_unfold)
    except (ValueError, msgpack.UnpackException) as error:
        raise LinkError(f"malformed message of {len(content)} bytes: {error}") from error
    if not isinstance(envelope, list) or not envelope or type(envelope[0]) is not int:
        raise LinkError(f"malformed message of {len(content)} bytes: it does not start with a protocol version")
    if envelope[0] != PROTOCOL:
        raise LinkError(
            f"the peer speaks protocol version {envelope[0]}, this program {PROTOCOL}; run the same robot_rl on both"
        )
    if len(envelope) != 3 or not isinstance(envelope[1], str) or not isinstance(envelope[2], dict):
        raise LinkError(f"malformed message of {len(content)} bytes: expected version, kind and fields")
    kind = KINDS.get(envelope[1])
    if kind is None:
        raise LinkError(f"unknown message {envelope[1][:40]!r}; valid: {', '.join(KINDS)}")
    try:
        return kind(**envelope[2])
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:3])
        raise LinkError(f"malformed message {envelope[1]}: {faults}") from error


def check_size(size: int, what: str) -> None:
    """Refuses more than `MAX_MESSAGE` bytes.

    Raises:
        LinkError: naming the size and the limit.
    """
    if size > MAX_MESSAGE:
        raise LinkError(f"{what} has {size} bytes, allowed are {MAX_MESSAGE}")


def _fold(value: object) -> msgpack.ExtType:
    """An array as msgpack takes it."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} may not cross")
    dtype = value.dtype.newbyteorder("<")
    if dtype not in _DTYPES or value.ndim > _MAX_DIMENSIONS:
        valid = ", ".join(known.name for known in _DTYPES)
        raise TypeError(
            f"an array of {value.dtype} in {value.ndim} dimensions may not cross; valid: {valid}, {_MAX_DIMENSIONS}"
        )
    head = _HEAD.pack(_DTYPES.index(dtype), value.ndim) + struct.pack(f"<{value.ndim}Q", *value.shape)
    return msgpack.ExtType(_ARRAY, head + value.astype(dtype, copy=False).tobytes())


def _unfold(code: int, content: bytes) -> np.ndarray:
    """Inverse of `_fold`: a new array, which may be written to."""
    if code != _ARRAY:
        raise LinkError(f"malformed message: extension {code} is unknown")
    try:
        number, dimensions = _HEAD.unpack_from(content)
        shape = struct.unpack_from(f"<{dimensions}Q", content, _HEAD.size)
    except struct.error as error:
        raise LinkError(f"malformed message: an array is cut short: {error}") from error
    if number >= len(_DTYPES) or dimensions > _MAX_DIMENSIONS:
        raise LinkError(f"malformed message: an array of dtype number {number} in {dimensions} dimensions")
    dtype, start = _DTYPES[number], _HEAD.size + 8 * dimensions
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise LinkError(f"malformed message: an array {shape} of {dtype} in {len(content) - start} bytes")
    stored = np.uint8 if dtype == np.bool_ else dtype  # a bool may only be 0 or 1
    try:
        return np.frombuffer(content, stored, offset=start).reshape(shape).astype(dtype)
    except ValueError as error:
        raise LinkError(f"malformed message: an array of shape {shape}: {error}") from error
