"""The messages between actor and learner; `robot_rl.system.message_codec` makes bytes of them.

Sender and receiver refuse what does not fit with a `LinkError`.

    actor -> learner   ActorHello, Demonstration, Pretrain, Start, StepTaken, EpisodeLabel, StateRequest, StatePart
                       (to load), Stop
    learner -> actor   LearnerReady, Parameters, UpdateProgress, Logs, StatePart (as requested), Failure
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.system.message_codec import MESSAGE, MessageCodec

PROTOCOL = 8
"""Version of these messages; both sides must have the same."""

Count = Annotated[int, Field(ge=0)]
SourceCode = Annotated[int, Field(ge=0, le=127)]


@dataclass(frozen=True, eq=False, config=MESSAGE)
class ActorHello:
    """The first message of an actor: all that the learner is made from, as plain values.

    Attributes:
        config: Configuration of the run.
        task: Its `EnvironmentSpec`.
        percepts: The `PerceptSpec` of the percepts that the learner receives.
        fingerprint: Of these three; a learner that reads them differently is of another version.
    """

    config: dict[str, Any]
    task: dict[str, Any]
    percepts: dict[str, Any]
    fingerprint: str


@dataclass(frozen=True, eq=False, config=MESSAGE)
class LearnerReady:
    """The learner is made, or has loaded a state. It has sent its parameters and progress before.

    Attributes:
        fingerprint: Of the configuration, task and percepts that the learner was made from.
    """

    fingerprint: str


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Demonstration:
    """An episode of T steps to be remembered as a demonstration.

    Attributes:
        rows: Packed states, shape (T + 1, n), float32.
        action: Executed, shape (T, m), float32.
        reward: Shape (T,), float32.
        terminated: Shape (T,), bool.
        truncated: Shape (T,), bool.
        source: Shape (T,), int8.
        images: Images of the percepts, shape (T + 1, ...); None for a policy without images.
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


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Pretrain:
    """A request for updates on the demonstrations alone, answered by `Logs`, `Parameters` and `UpdateProgress`.

    Attributes:
        updates: Number of updates.
    """

    updates: Annotated[int, Field(ge=1)]


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Start:
    """An online episode started.

    Attributes:
        row: Its first packed state, shape (n,).
        images: Images of its percept, or None.
        episode_id: Its name, for `EpisodeLabel`.
        potential: Of that observation; 0 where rewards are not shaped.
    """

    row: np.ndarray
    images: np.ndarray | None = None
    episode_id: str = ""
    potential: float = 0.0


@dataclass(frozen=True, eq=False, config=MESSAGE)
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
        images: Images of the percept that it led to, or None.
        undecided: Whether its reward is unknown until a label arrives.
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


@dataclass(frozen=True, eq=False, config=MESSAGE)
class EpisodeLabel:
    """The label of an online episode that has ended.

    Attributes:
        episode_id: As in its `Start`.
        success: Whether it succeeded.
        since: Steps after which it had succeeded; 0: in its last one.
    """

    episode_id: str
    success: bool
    since: Count = 0


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Parameters:
    """A policy to act with.

    Attributes:
        updates: Critic updates that it has seen.
        arrays: Its parameters by name.
    """

    updates: Count
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False, config=MESSAGE)
class UpdateProgress:
    """The counters of the learner.

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


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Logs:
    """Mean logs of the last updates, by name."""

    values: dict[str, float]


@dataclass(frozen=True, eq=False, config=MESSAGE)
class StateRequest:
    """A request for the newest parameters, then the state, once all that was sent before has been learned from."""


@dataclass(frozen=True, eq=False, config=MESSAGE)
class StatePart:
    """A piece of a learner's state. The actor sends pieces of a state that the learner is to load.

    Attributes:
        index: Position of the piece, from 0.
        count: Number of pieces.
        content: Its bytes; put together they are a checkpoint.
    """

    index: Count
    count: Annotated[int, Field(ge=1)]
    content: bytes


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Stop:
    """A request to end."""


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Failure:
    """The learner has ended by an error.

    Attributes:
        error: Name of its class.
        text: Its message.
    """

    error: str
    text: str


Message = (
    ActorHello
    | LearnerReady
    | Demonstration
    | Pretrain
    | Start
    | StepTaken
    | EpisodeLabel
    | Parameters
    | UpdateProgress
    | Logs
    | StateRequest
    | StatePart
    | Stop
    | Failure
)


_CODEC: MessageCodec[Message] = MessageCodec(PROTOCOL, Message.__args__)
KINDS = _CODEC.kinds
encode, decode = _CODEC.encode, _CODEC.decode
