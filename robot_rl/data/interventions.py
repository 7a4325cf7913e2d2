"""Take-overs in a recorded episode: where an operator took control from the policy, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from robot_rl.clock import NS_PER_S
from robot_rl.data.schema import OPERATOR_SOURCES, Episode, Source


class InterventionSpan(NamedTuple):
    """One take-over.

    Attributes:
        start: Step at which the operator took over.
        end: Step after the last one that the operator commanded; rests in between are part of it.
        seconds: How long that was.
    """

    start: int
    end: int
    seconds: float


def take_overs(sources: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first step of each take-over and the step after its last one, from who was in control."""
    found, start, end = [], None, 0
    for t, source in enumerate([*sources, Source.POLICY]):
        if source in OPERATOR_SOURCES:
            start, end = (t if start is None else start), t + 1
        elif source == Source.POLICY and start is not None:
            found.append((start, end))
            start = None
    return found


def interventions(episode: Episode) -> list[InterventionSpan]:
    """Return the take-overs of an episode, in their order."""
    stamps = episode.stamp_obs
    return [
        InterventionSpan(start, end, float(stamps[end] - stamps[start]) / NS_PER_S)
        for start, end in take_overs(episode.control.tolist())
    ]
