"""The messages between a training and the process of its labeller, over its standard input and output.

`robot_rl.system.message_codec` makes bytes of them.

training -> labeller    LabellingOrder, then StoreOpened, then EpisodeRecorded whenever an episode was recorded
labeller -> training    LabellerReady, then Labelled for each label, RoundDone after each round; at last LabellerEnded;
                        of preferences SessionDone and StepsRewarded instead of Labelled
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from robot_rl.config.labelling import LabelConfig
from robot_rl.config.reward import PreferencesConfig
from robot_rl.errors import LinkError
from robot_rl.reward.validation.probability_calibration import Calibration
from robot_rl.system.message_codec import MESSAGE, MessageCodec

PROTOCOL = 2
"""Version of these messages; both sides must have the same."""


@dataclass(frozen=True)
class Order:
    """The settings of a labeller.

    Attributes:
        name: Of the labels.
        config: Of the labeller.
        task: The instruction of the robot.
        identity: All that an answer depends on, besides the episode; a labeller that turns out another refuses.
        calibration: Of its probabilities; None if there is none.
        find_onset: Whether to find the step from which on a success was one.
        preferences: For preferences: how many pairs, when, and what is learned from them.
    """

    name: str
    config: LabelConfig
    task: str
    identity: Mapping[str, Any]
    calibration: Calibration | None = None
    find_onset: bool = False
    preferences: PreferencesConfig | None = None


_ORDERS = TypeAdapter(Order)


@dataclass(frozen=True)
class LabellingOrder:
    """An `Order` as plain values.

    Attributes:
        settings: Its fields.
    """

    settings: dict[str, Any]

    @classmethod
    def of(cls, order: Order) -> LabellingOrder:
        """Return the message of an order."""
        return cls(_ORDERS.dump_python(order, mode="json"))

    def order(self) -> Order:
        """Return the order of this message.

        Raises:
            LinkError: if it is none of this version.
        """
        try:
            return _ORDERS.validate_json(json.dumps(self.settings))  # as JSON: a list is valid where a tuple is due
        except ValidationError as error:
            raise LinkError(f"the order of the training is not understood: {error}") from error


@dataclass(frozen=True)
class StoreOpened:
    """The store whose episodes are to be labelled.

    Attributes:
        path: Of the store.
    """

    path: str


@dataclass(frozen=True)
class EpisodeRecorded:
    """The store has a new episode."""


@dataclass(frozen=True)
class LabellerReady:
    """The model was reached, and is the one of the order."""


@dataclass(frozen=True)
class Labelled:
    """A label is on the disk. After a new start those that were there before are sent again.

    Attributes:
        episode_id: Of the episode.
        status: How the answer was read.
        values: As in `Answer`.
        lag: From the end of the episode's recording [s]; None if the label is not new.
        queried: Whether the model was queried for it just now; otherwise the answer was known.
        cost: Of the queries; 0 if there were none.
        since: Steps after which it had succeeded; 0: not determined.
    """

    episode_id: str
    status: str
    values: tuple[float, ...]
    lag: float | None
    queried: bool
    cost: float
    since: int = 0


@dataclass(frozen=True)
class SessionDone:
    """Pairs were queried, and a reward was learned from all pairs so far.

    Attributes:
        session: Its number, from 1.
        pairs: Pairs that the reward was fitted to.
        skipped: Pairs with an answer that could not be used.
        flip_rate: Share of the pairs whose two answers contradict each other; None if there are none.
        accuracy: Share of the held-out decided pairs that the reward predicts; None if there is none, or no reward yet.
        disagreement: Of the ensemble about the pairs that were chosen, mean; None if there was no ensemble.
        disagreement_drawn: Likewise, about all pairs that it chose from.
        queried: Queries that were made.
        cost: Of them.
        seconds: Duration of the session [s].
        stopped: Why not all pairs were answered, or why there is no reward yet; empty otherwise.
    """

    session: int
    pairs: int
    skipped: int
    flip_rate: float | None
    accuracy: float | None
    disagreement: float | None
    disagreement_drawn: float | None
    queried: int
    cost: float
    seconds: float
    stopped: str


@dataclass(frozen=True, eq=False, config=MESSAGE)
class StepsRewarded:
    """Learned rewards of an episode.

    Attributes:
        episode_id: Of the episode.
        closeness: As in `LearnerPort.reward_episode`, shape (T,), float32.
    """

    episode_id: str
    closeness: np.ndarray


@dataclass(frozen=True)
class RoundDone:
    """A round is over.

    Attributes:
        left: Episodes that got no label in it; the next round tries again.
        why: The reason; empty if all have a label.
        seconds: Duration of the queries [s].
    """

    left: tuple[str, ...]
    why: str
    seconds: float


@dataclass(frozen=True)
class LabellerEnded:
    """No more labels come.

    Attributes:
        why: The reason.
        failed: Whether that is an error; otherwise the budget is spent.
    """

    why: str
    failed: bool


TrainingMessage = LabellingOrder | StoreOpened | EpisodeRecorded
LabellerMessage = LabellerReady | Labelled | SessionDone | StepsRewarded | RoundDone | LabellerEnded
TO_LABELLER: MessageCodec[TrainingMessage] = MessageCodec(PROTOCOL, TrainingMessage.__args__)
TO_TRAINING: MessageCodec[LabellerMessage] = MessageCodec(PROTOCOL, LabellerMessage.__args__)
