"""The messages between a training and the process of its labeller: lines of JSON.

training -> labeller    Order, then the path of the store, then an empty line whenever an episode was recorded
labeller -> training    LabellerReady, then Labelled for each label, RoundDone after each round; at last LabellerEnded
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from robot_rl.config.labelling import LabelConfig
from robot_rl.reward.validation.probability_calibration import Calibration


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
    """

    name: str
    config: LabelConfig
    task: str
    identity: Mapping[str, Any]
    calibration: Calibration | None = None
    find_onset: bool = False


@dataclass(frozen=True)
class LabellerReady:
    """The model was reached, and is the one of the order."""

    kind: Literal["ready"] = "ready"


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
    kind: Literal["labelled"] = "labelled"


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
    kind: Literal["round done"] = "round done"


@dataclass(frozen=True)
class LabellerEnded:
    """No more labels come.

    Attributes:
        why: The reason.
        failed: Whether that is an error; otherwise the budget is spent.
    """

    why: str
    failed: bool
    kind: Literal["ended"] = "ended"


LabellerMessage = Annotated[LabellerReady | Labelled | RoundDone | LabellerEnded, Field(discriminator="kind")]
MESSAGES: TypeAdapter[LabellerReady | Labelled | RoundDone | LabellerEnded] = TypeAdapter(LabellerMessage)
ORDERS = TypeAdapter(Order)
