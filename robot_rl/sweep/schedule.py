"""The schedule of a sweep: rounds of trials, each halved successively (Karnin 2013, Jamieson and Talwalkar 2016).

The trials of a round begin with few env steps; the best 1/eta of them go on with eta times as many, and so on up to the
full number. Whole rounds are compared, not single trials as they end (ASHA): then the result does not depend on which
process was faster, and a sweep that is killed and continued gives the same table. On one machine the price is that
processes wait for the end of a rung.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How many trials run for how long.

    Attributes:
        budget: Trials in all.
        round_size: Trials that are suggested at once, from what the rounds before have shown.
        steps: Env steps at the last rung.
        eta: Of so many trials one goes on to the next rung.
        rungs: How many rungs there are; 1 plays every trial to its end.
    """

    budget: int
    round_size: int
    steps: int
    eta: int = 3
    rungs: int = 3

    @property
    def rounds(self) -> list[range]:
        """Numbers of the trials of each round."""
        return self.rounds_after(0)

    def rounds_after(self, trials: int) -> list[range]:
        """Return the numbers of the trials of each round that follows so many trials."""
        starts = range(trials, self.budget, self.round_size)
        return [range(start, min(start + self.round_size, self.budget)) for start in starts]

    def steps_at(self, rung: int) -> int:
        """Env steps of a trial at a rung, from 0."""
        return max(1, round(self.steps / self.eta ** (self.rungs - 1 - rung)))

    def promoted(self, scores: Mapping[int, float]) -> list[int]:
        """Return the trials that go on to the next rung, the best first; of equals the one with the lower number.

        Args:
            scores: Of the trials of one round at one rung, by number.
        """
        count = max(1, len(scores) // self.eta)
        return sorted(scores, key=lambda number: (-scores[number], number))[:count]


def best_of(scores: Sequence[Mapping[int, float]]) -> tuple[int, int]:
    """Return the rung and the number of the best trial: the best score at the last rung that any trial reached.

    Args:
        scores: For each rung, the scores of the trials that reached it.

    Raises:
        ValueError: if there are no scores.
    """
    for rung in range(len(scores) - 1, -1, -1):
        if scores[rung]:
            return rung, min(scores[rung], key=lambda number: (-scores[rung][number], number))
    raise ValueError("a sweep without scores has no best trial")
