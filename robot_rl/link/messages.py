"""The messages between actor and learner; `robot_rl.system.message_codec` makes bytes of them.

Sender and receiver refuse what does not fit with a `LinkError`.

    actor -> learner   ActorHello, Demonstration, Pretrain, Start, StepTaken, EpisodeLabel, EpisodeRewards, Hindsight,
                       StateRequest, StatePart (to load), Stop
    learner -> actor   LearnerReady, Parameters, UpdateProgress, Logs, StatePart (as requested), Failure
    robot -> fleet     RobotHello, EpisodePart, EpisodeLabel, EpisodeRewards, RobotBeat, RobotFinished
    learner -> learner RankHello, then what it receives itself, StateRequest and StatePart
    fleet -> robot     RobotAccepted, Parameters, UpdateProgress, EpisodesLearned, RobotRefused, Failure
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.system.message_codec import MESSAGE, MessageCodec

PROTOCOL = 13
"""Version of these messages; both sides must have the same."""

Count = Annotated[int, Field(ge=0)]


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
        percepts: The T + 1 observations.
        steps: The T steps between them.
        episode_id: Its name, for `EpisodeRewards`.
    """

    percepts: Annotated[list[Percept], Field(min_length=1)]
    steps: list[Transition]
    episode_id: str = ""


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
        percept: Its first observation.
        episode_id: Its name, for `EpisodeLabel`.
    """

    percept: Percept
    episode_id: str = ""


@dataclass(frozen=True, eq=False, config=MESSAGE)
class StepTaken:
    """An online step.

    Attributes:
        number: Online steps of the run before this one; the learner refuses a step that is missing or comes twice.
        step: The step.
        percept: Observation that it led to.
    """

    number: Count
    step: Transition
    percept: Percept


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
class EpisodeRewards:
    """Learned rewards of an episode that has ended, or of a demonstration.

    Attributes:
        episode_id: As in its `Start` or `Demonstration`.
        closeness: As in `LearnerPort.reward_episode`, shape (T,), float32.
    """

    episode_id: str
    closeness: np.ndarray


@dataclass(frozen=True, eq=False, config=MESSAGE)
class Hindsight:
    """Transitions derived from the newest online episode, with other goals.

    Attributes:
        rows: The transitions.
    """

    rows: Relabelled


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
        value: Return that the critics expect from the newest observation on; None where that is not known.
        episode_id: Of the episode of that observation; empty: not known.
    """

    env_steps: Count
    updates: Count
    update_to_data: float
    offline_updates: Count = 0
    value: float | None = None
    episode_id: str = ""


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


@dataclass(frozen=True, eq=False, config=MESSAGE)
class RankHello:
    """The first message to a learner that learns along with the one that receives the steps.

    Attributes:
        config: As in `ActorHello`, as the next three.
        task: See there.
        percepts: See there.
        fingerprint: See there.
        robots: Share of each robot of a fleet in what is sampled; None: there is one robot, without a name.
        rank: Its number, from 1.
        meeting: The file by which the learners find each other.
    """

    config: dict[str, Any]
    task: dict[str, Any]
    percepts: dict[str, Any]
    fingerprint: str
    robots: dict[str, float] | None
    rank: Annotated[int, Field(ge=1)]
    meeting: str


@dataclass(frozen=True, eq=False, config=MESSAGE)
class RobotHello:
    """The first message of a robot of a fleet, as plain values.

    Attributes:
        robot: Its name in the fleet.
        session: Random number of its process.
        version: Of robot_rl.
        config: Configuration of its run.
        task: Its `EnvironmentSpec`.
        percepts: The `PerceptSpec` of its percepts.
        base: Identity of the base that it corrects; empty without one.
    """

    robot: str
    session: Count
    version: str
    config: dict[str, Any]
    task: dict[str, Any]
    percepts: dict[str, Any]
    base: str = ""


@dataclass(frozen=True, eq=False, config=MESSAGE)
class RobotAccepted:
    """The answer to a robot: how much of its store the learner has, see `Cursor`.

    Attributes:
        episodes: How many episodes.
        fingerprint: Of the last of them.
    """

    episodes: Count
    fingerprint: str


@dataclass(frozen=True, eq=False, config=MESSAGE)
class EpisodePart:
    """Consecutive rows of a recorded episode. Parts come in order; the last one completes the episode.

    Attributes:
        place: Of the episode in the robot's store, from 0.
        episode_id: Its name there.
        fingerprint: Of its file.
        demonstration: Whether it is to be remembered as a demonstration.
        length: Steps of the whole episode, T.
        first: Step of the episode that the first of `steps` is.
        percepts: The observations after these steps; before the first step of the episode comes the first observation.
        steps: The steps.
    """

    place: Count
    episode_id: str
    fingerprint: str
    demonstration: bool
    length: Annotated[int, Field(ge=1)]
    first: Count
    percepts: list[Percept]
    steps: list[Transition]


@dataclass(frozen=True, eq=False, config=MESSAGE)
class EpisodesLearned:
    """How far a learner is with the store of a robot.

    Attributes:
        learned: Episodes that it has learned from.
        saved: Those that are part of its newest checkpoint.
        finished: Whether that checkpoint also holds that the robot has finished.
    """

    learned: Count
    saved: Count
    finished: bool = False


@dataclass(frozen=True, eq=False, config=MESSAGE)
class RobotBeat:
    """A sign of life of a robot.

    Attributes:
        waiting: Episodes in its store that it has not sent.
    """

    waiting: Count = 0


@dataclass(frozen=True, eq=False, config=MESSAGE)
class RobotFinished:
    """A robot has played all that it should.

    Attributes:
        episodes: Of its store; it waits until all of them are saved.
    """

    episodes: Count


@dataclass(frozen=True, eq=False, config=MESSAGE)
class RobotRefused:
    """A robot is not accepted.

    Attributes:
        text: Why, and what is valid.
        final: Whether it need not try again.
    """

    text: str
    final: bool


Message = (
    ActorHello
    | LearnerReady
    | Demonstration
    | Pretrain
    | Start
    | StepTaken
    | EpisodeLabel
    | EpisodeRewards
    | Hindsight
    | Parameters
    | UpdateProgress
    | Logs
    | StateRequest
    | StatePart
    | Stop
    | Failure
    | RankHello
    | RobotHello
    | RobotAccepted
    | EpisodePart
    | EpisodesLearned
    | RobotBeat
    | RobotFinished
    | RobotRefused
)


_CODEC: MessageCodec[Message] = MessageCodec(PROTOCOL, Message.__args__)
KINDS = _CODEC.kinds
encode, decode = _CODEC.encode, _CODEC.decode
