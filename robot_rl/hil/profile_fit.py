"""Habits of an operator, estimated from a recorded run: when, how often, how long and how usefully they took over.

How far the goal is follows from an observation of its position in the tool's frame. A reason to take over is a stall,
a time in which the tool has come no nearer. Reaction time and patience cannot be told apart from one run; a run of a
reference operator on the same task gives what patience alone does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_rl.data.interventions import interventions
from robot_rl.data.schema import STATE_PREFIX, Episode
from robot_rl.data.store.layout import find_store
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError, UnknownNameError
from robot_rl.statistics import bootstrap_interval, wilson_interval

PROGRESS = 0.002
"""Decrease of the distance to the goal that ends a stall [m]."""
RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        count: Observations behind it.
    """

    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Habits:
    """What one run shows of its operator: one entry per take-over, or per online episode.

    Attributes:
        waits: Time since the tool came nearer to the goal, when the operator took over [s]. Shape (N,).
        lengths: Of the take-overs that did not end with their episode [s].
        useful: Whether the take-over ended in success, or nearer to the goal than it began. Shape (N,).
        counts: Take-overs of each episode.
        policy_minutes: Time that the policy led, of each episode [min].
    """

    waits: np.ndarray
    lengths: np.ndarray
    useful: np.ndarray
    counts: np.ndarray
    policy_minutes: np.ndarray


def read_habits(run: Path, goal: str | None = None) -> Habits:
    """Read the take-overs of a run, or of its store.

    Args:
        run: The directory.
        goal: Observation with the position of the goal in the tool's frame; None finds it by its name.

    Raises:
        DataError: if there is no store, no take-over, or no observation of the goal.
        UnknownNameError: if there is no observation of that name.
    """
    waits, lengths, useful, counts, minutes = [list[float]() for _ in range(5)]
    with EpisodeStore.open(find_store(run)) as store:
        for row in store.summaries():
            if row.facts.demonstration:
                continue
            episode = store.read(row.episode_id)
            distance = _distance(episode, goal)
            period = float(np.median(np.diff(episode.stamp_obs))) / 1e9
            stall = _stalled(distance) * period
            spans = interventions(episode)
            led = sum(one.seconds for one in spans)
            counts.append(len(spans))
            minutes.append((len(episode) * period - led) / 60.0)
            for one in spans:
                ended = one.end == len(episode)
                waits.append(float(stall[one.start]))
                nearer = distance[one.end] < distance[one.start] - PROGRESS
                useful.append(float(nearer or (ended and bool(row.success))))
                if not ended:
                    lengths.append(one.seconds)
    if not waits:
        raise DataError(f"{run} holds no take-over; record a run in which somebody takes over, e.g. with --console")
    return Habits(*(np.array(column) for column in (waits, lengths, useful, counts, minutes)))


def _distance(episode: Episode, goal: str | None) -> np.ndarray:
    """Return the distance to the goal before each step and after the last one [m], shape (T + 1,)."""
    observed = {key: rows for key, rows in episode.observations.items() if key.startswith(STATE_PREFIX)}
    if goal is not None and goal not in observed:
        raise UnknownNameError("observation", goal, sorted(observed))
    found = [key for key in observed if key.endswith(("_estimate", "/target", "/bin"))]
    if goal is None and len(found) != 1:
        held = ", ".join(sorted(observed))
        raise DataError(f"which observation tells where the goal is? name it with --goal; there are {held}")
    return np.linalg.norm(observed[goal or found[0]][:, :3], axis=1)


def _stalled(distance: np.ndarray) -> np.ndarray:
    """Return for each time the steps since the distance had last fallen by `PROGRESS`. Shape as `distance`."""
    best, since, steps = np.inf, 0, []
    for value in distance.tolist():
        best, since = (value, 0) if value < best - PROGRESS else (best, since + 1)
        steps.append(since)
    return np.array(steps)


def estimates(habits: Habits) -> dict[str, Estimate]:
    """Estimate the habits of one operator.

    `wait_s`: the quarter of the take-overs with the least wait waited less than this; later ones are second thoughts.
    `length_s`: mean length of a take-over. `useful`: share that helped (Wilson interval). `per_minute`: take-overs per
    minute that the policy led, of the episodes in which it led at all. `watched`: share of episodes with a take-over, a
    lower bound of those watched.
    """
    found = {"wait_s": _estimate(habits.waits, _soonest)}
    if habits.lengths.size:
        found["length_s"] = _estimate(habits.lengths, np.mean)
    found["useful"] = _share(habits.useful)
    shared = habits.policy_minutes > 0
    if shared.any():
        counts, minutes = habits.counts[shared], habits.policy_minutes[shared]
        found["per_minute"] = Estimate(
            _of_sums(counts, minutes), *_ratio_interval(counts, minutes, _of_sums), count=len(counts)
        )
    found["watched"] = _share(habits.counts > 0)
    return found


def fit_profile(habits: Habits, reference: Habits) -> dict[str, Estimate]:
    """Estimate numbers of `OperatorProfile` from a run and one of the `ideal` operator on the same task.

    `reaction_s`: the wait beyond that of the reference, at its patience. `length`: factor of the mean length. `wrong`:
    share of take-overs that no longer helped, 1 - useful / useful of the reference; a take-over that leads beside the
    goal, but nearer to it, counts as useful, so it is a lower bound.
    """
    found = {
        "reaction_s": _compared(habits.waits, reference.waits, _soonest, lambda one, other: max(0.0, one - other)),
        "wrong": _compared(habits.useful, reference.useful, np.mean, _lost),
    }
    if habits.lengths.size and reference.lengths.size:
        found["length"] = _compared(habits.lengths, reference.lengths, np.mean, lambda one, other: one / other)
    return found


def profile_settings(fitted: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    """Return the section `intervention` of a configuration with these estimates."""
    return {"intervention": {name: round(one.value, 4) for name, one in fitted.items()}}


Statistic = Callable[[np.ndarray], float]


def _soonest(waits: np.ndarray) -> float:
    return float(np.quantile(waits, 0.25, method="lower"))


def _lost(one: float, other: float) -> float:
    return min(1.0, max(0.0, 1.0 - one / other)) if other else 0.0


def _of_sums(over: np.ndarray, under: np.ndarray) -> float:
    return float(over.sum() / under.sum())


def _share(hits: np.ndarray) -> Estimate:
    """Return the share of the entries that are not 0, with Wilson's interval."""
    count, total = int(np.count_nonzero(hits)), len(hits)
    return Estimate(count / total, *wilson_interval(count, total), total)


def _estimate(values: np.ndarray, statistic: Statistic) -> Estimate:
    low, high = bootstrap_interval([values], statistic, resamples=RESAMPLES)
    return Estimate(float(statistic(values)), low, high, len(values))


def _ratio_interval(
    over: np.ndarray, under: np.ndarray, statistic: Callable[[np.ndarray, np.ndarray], float]
) -> tuple[float, float]:
    """Return the percentile interval of a statistic of pairs, drawn again together."""
    rows = np.arange(len(over), dtype=float)
    return bootstrap_interval(
        [rows], lambda drawn: statistic(over[drawn.astype(int)], under[drawn.astype(int)]), resamples=RESAMPLES
    )


def _compared(
    values: np.ndarray, reference: np.ndarray, statistic: Statistic, compare: Callable[[float, float], float]
) -> Estimate:
    """Compare a statistic of two runs, each drawn again by itself."""
    count, together = len(values), np.concatenate((values, reference))
    low, high = bootstrap_interval(
        [np.arange(count, dtype=float), np.arange(count, len(together), dtype=float)],
        lambda rows: _compare_rows(together, rows.astype(int), count, statistic, compare),
        resamples=RESAMPLES,
    )
    return Estimate(float(compare(statistic(values), statistic(reference))), low, high, count)


def _compare_rows(
    together: np.ndarray,
    rows: Sequence[int] | np.ndarray,
    count: int,
    statistic: Statistic,
    compare: Callable[[float, float], float],
) -> float:
    """Compare the first `count` of the rows with the others."""
    return compare(float(statistic(together[rows[:count]])), float(statistic(together[rows[count:]])))
