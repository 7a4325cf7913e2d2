"""Since when an episode has been a success: the question about its end, asked of other beginnings of it.

What is done is taken to stay done, so each answer halves what is in question. It knows who is asked and what a success
is; it does not know what is learned from it.
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
"""Of the name of these labels: kept apart, for they say nothing of how an episode ended."""


class Onset:
    """Asks about the successes of a store.

    Args:
        store: Directory of the episode store.
        order: Who labels, and from which probability on something is a success.
        labels: Where labels go.
        backend: Who is asked.
        identity: All that an answer depends on, besides the episode.
    """

    def __init__(
        self, store: Path, order: Order, labels: LabelStore, backend: Backend, identity: dict[str, object]
    ) -> None:
        self._store, self._order, self._labels, self._backend = store, order, labels, backend
        self._name = order.name + SUFFIX
        labels.begin(self._name, QueryKind.SUCCESS, identity, config_to_dict(order.config))

    def of(self, row: EpisodeSummary, label: Answer) -> tuple[int, float]:
        """Steps after which an episode that is called a success was one, and what it cost to ask.

        It may be found late, if not all questions are answered, but never before a frame that is called a success.
        Where the label is no success, or nobody learns from it because the outcome is known, it is 0.
        """
        if row.success is not None or not self._is_success(label):
            return 0, 0.0
        order, cost = self._order, 0.0
        with EpisodeStore.open(self._store) as store:
            units = Units(store, order.config, order.task, only=[row.episode_id])
            before, since = 0, row.length
            while since - before > 1:
                middle = (before + since) // 2
                answer, price = self._ask(units.beginning(row.episode_id, middle))
                cost += price
                if answer is None:
                    break
                before, since = (before, middle) if self._is_success(answer) else (middle, since)
        return since, cost

    def _is_success(self, answer: Answer) -> bool:
        return bool(labelled_success(answer, self._order.calibration))

    def _ask(self, unit: Unit) -> tuple[Answer | None, float]:
        done = Labelling(self._labels, self._name, self._backend).run([unit])
        return self._labels.find(self._name, unit.subject), done.cost
