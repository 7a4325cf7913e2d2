"""The onset of a success: the step from which on an episode was one, found by queries about its beginnings.

A task that is done is assumed to stay done, so each answer halves the interval (bisection).
"""

from __future__ import annotations

from pathlib import Path

from robot_rl.config.load import config_to_dict
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.reward.answer import Answer
from robot_rl.reward.backend import Backend
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.process_messages import Order
from robot_rl.reward.labels.units import Unit, Units
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.probability_calibration import labelled_success

SUFFIX = "-onset"
"""Of the name of these labels: kept apart, because they are not about the end of an episode."""


class Onset:
    """Finds the onsets of the successes of a store.

    Args:
        store: Directory of the episode store.
        order: The labeller's settings and calibration.
        labels: Where labels go.
        backend: Answers the queries.
        identity: All that an answer depends on, besides the episode.
    """

    def __init__(
        self, store: Path, order: Order, labels: LabelStore, backend: Backend, identity: dict[str, object]
    ) -> None:
        self._store, self._order, self._labels, self._backend = store, order, labels, backend
        self._name = order.name + SUFFIX
        labels.begin(self._name, QueryKind.SUCCESS, identity, config_to_dict(order.config))

    def of(self, row: EpisodeSummary, label: Answer) -> tuple[int, float]:
        """Return the number of steps after which an episode labelled a success was one, and the cost of the queries.

        It may be too large if not all queries are answered, but never before a frame that is labelled a success.
        It is 0 where the label is no success, or is not learned from because the outcome is known.
        """
        if row.success is not None or not self._is_success(label):
            return 0, 0.0
        order, cost = self._order, 0.0
        with EpisodeStore.open(self._store) as store:
            units = Units(store, order.config, order.task, only=[row.episode_id])
            before, since = 0, row.length
            while since - before > 1:
                middle = (before + since) // 2
                answer, price = self._query(units.beginning(row.episode_id, middle))
                cost += price
                if answer is None:
                    break
                before, since = (before, middle) if self._is_success(answer) else (middle, since)
        return since, cost

    def _is_success(self, answer: Answer) -> bool:
        return bool(labelled_success(answer, self._order.calibration))

    def _query(self, unit: Unit) -> tuple[Answer | None, float]:
        done = Labelling(self._labels, self._name, self._backend).run([unit])
        return self._labels.find(self._name, unit.subject), done.cost
