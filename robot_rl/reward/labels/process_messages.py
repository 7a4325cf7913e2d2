"""What a training and the process of its labeller say to each other: lines of JSON.

training -> labeller    Order, then the path of the store, then an empty line whenever an episode was recorded
labeller -> training    Ready, then Labelled for each label, Looked after each round; Ended is the last word
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
    """Who shall label, and how.

    Attributes:
        name: Of the labels.
        config: Of the labeller.
        task: What the robot is to do.
        identity: All that an answer depends on, besides the episode; a labeller that turns out another refuses.
        calibration: Of its probabilities; None if there is none.
        find_onset: Whether to ask of a success since when it has been one.
    """

    name: str
    config: LabelConfig
    task: str
    identity: Mapping[str, Any]
    calibration: Calibration | None = None
    find_onset: bool = False


@dataclass(frozen=True)
class Ready:
    """Whoever is asked was reached, and is who is wanted."""

    kind: Literal["ready"] = "ready"


@dataclass(frozen=True)
class Labelled:
    """A label is on the disk. After a new start those that were there before are told again.

    Attributes:
        episode_id: Of the episode.
        status: How the answer was read.
        values: As in `Answer`.
        lag: From the end of the episode's recording [s]; None if the label is not new.
        asked: Whether it was asked for just now; otherwise the question had an answer already.
        cost: Of asking; 0 if nothing was asked.
        since: Steps after which it had succeeded; 0: nobody asked.
    """

    episode_id: str
    status: str
    values: tuple[float, ...]
    lag: float | None
    asked: bool
    cost: float
    since: int = 0
    kind: Literal["labelled"] = "labelled"


@dataclass(frozen=True)
class Looked:
    """A round is over.

    Attributes:
        left: Episodes that got no label in it; they are asked about again.
        why: In words; empty if there are none.
        seconds: How long it asked [s].
    """

    left: tuple[str, ...]
    why: str
    seconds: float
    kind: Literal["looked"] = "looked"


@dataclass(frozen=True)
class Ended:
    """No more labels come.

    Attributes:
        why: In words.
        failed: Whether that is an error; otherwise the budget is spent.
    """

    why: str
    failed: bool
    kind: Literal["ended"] = "ended"


Word = Annotated[Ready | Labelled | Looked | Ended, Field(discriminator="kind")]
WORDS: TypeAdapter[Ready | Labelled | Looked | Ended] = TypeAdapter(Word)
ORDERS = TypeAdapter(Order)
