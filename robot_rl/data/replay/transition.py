"""What a learner receives of one step, besides the observations: the one record for messages, learner and replay.

An optional extra of a step is a field with a default here. Then it crosses the link and reaches replay by itself; its
producer and `ReplayBuffer` are the other two places to change. An extra of an observation is a field of `Percept`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from robot_rl.data.schema import Episode, Step


class Transition(NamedTuple):
    """One step, without the observations before and after it.

    Attributes:
        action: Executed action, shape (action_size,).
        reward: Reward of the step.
        terminated: Success or failure: nothing follows.
        truncated: Cut here: what would follow still counts.
        source: Who chose the action, a `Source`.
        undecided: Whether its reward is unknown until a label arrives; only of the last step of an episode.
    """

    action: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    source: Annotated[int, Field(ge=0, le=127)]
    undecided: bool = False

    @classmethod
    def of(cls, step: Step) -> Transition:
        """Return the transition of a recorded step."""
        ends = bool(step.terminated), bool(step.truncated)
        return cls(step.action, float(step.reward), *ends, int(step.source), bool(step.undecided))

    @classmethod
    def of_episode(cls, episode: Episode) -> list[Transition]:
        """Return the T transitions of an episode."""
        columns = (episode.reward, episode.terminated, episode.truncated, episode.source)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [cls(action, *row) for action, row in zip(episode.action, rows, strict=True)]
