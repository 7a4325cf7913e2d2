"""The price of a run in human action: what people, or a script in their place, led, demonstrated, labelled and pressed.

Every number is derived from what is recorded: the sources and facts of the episodes, and the record of the operator's
buttons. Nothing is counted that a kill or a resumed run could lose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.episode_facts import EpisodeFacts
from robot_rl.data.interventions import take_overs
from robot_rl.data.schema import OPERATOR_SOURCES, Episode, Observation, Step
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.supervision import OPERATOR_JUDGE, RESET
from robot_rl.system.checked_json import read_rows

OPERATOR_LOG = "operator.jsonl"
"""Record of the operator's buttons and labels, in the directory of a run."""


class HumanEffort:
    """Seconds and acts of the operator in one run; an observer of its online episodes.

    Args:
        control_period: Time between two steps [s].
        log: The record of the operator's buttons; it need not exist.
    """

    def __init__(self, control_period: float, log: Path) -> None:
        self._period, self._log = control_period, log
        self._counts: Counter[str] = Counter()

    @classmethod
    def of_run(cls, run: Path, control_period: float) -> HumanEffort:
        """Return the effort in all that a run has recorded so far.

        Raises:
            DataError: if an episode cannot be read.
        """
        effort = cls(control_period, run / OPERATOR_LOG)
        with EpisodeStore.open(run / "episodes") as store:
            effort.recount(store)
        return effort

    def recount(self, store: EpisodeStore, known: Mapping[str, int] | None = None) -> None:
        """Count the episodes of a store, and nothing else, from now on.

        Args:
            store: The store.
            known: `counts` of its first episodes, which are not read again: that would take seconds for thousands.

        Raises:
            DataError: if an episode cannot be read.
        """
        self._counts = Counter(known or {})
        for row in store.summaries()[self._counts["episodes"] :]:
            self.add(store.sources(row.episode_id), row.facts)

    @property
    def counts(self) -> dict[str, int]:
        """What `recount` takes: the number of `episodes`, and what was counted in them."""
        return dict(self._counts)

    def add(self, sources: np.ndarray, facts: EpisodeFacts) -> None:
        """Add an episode.

        Args:
            sources: Who was in control of each step, shape (T,).
            facts: Of the episode.
        """
        led = int(np.isin(sources, OPERATOR_SOURCES).sum())
        counts = self._counts
        counts["episodes"] += 1
        counts["manual_resets"] += facts.cut == RESET
        counts["judged"] += facts.judge == OPERATOR_JUDGE
        if facts.demonstration:
            counts["demonstrations"] += 1
            counts["demonstrated"] += led
        else:
            counts["led"] += led
            counts["takeovers"] += len(take_overs(sources.tolist()))

    @property
    def figures(self) -> dict[str, Any]:
        """The price so far.

        `seconds`: of leading and demonstrating together. `led_s`, `takeovers`: online. `demonstrations`,
        `demonstration_s`: episodes that were led from start to end, also recorded ones. `manual_resets`: episodes that
        the operator cut to reset the scene. `labels`: episodes that the operator judged, while they ran or later.
        `presses`: buttons of the console.
        """
        counts, kinds = self._counts, self._acts()
        led, demonstrated = counts["led"] * self._period, counts["demonstrated"] * self._period
        return {
            "seconds": round(led + demonstrated, 3),
            "led_s": round(led, 3),
            "takeovers": counts["takeovers"],
            "demonstrations": counts["demonstrations"],
            "demonstration_s": round(demonstrated, 3),
            "manual_resets": counts["manual_resets"],
            "labels": counts["judged"] + kinds["label"],
            "presses": kinds["do"],
        }

    def _acts(self) -> Counter[str]:
        """Count the rows of the record of buttons by their kind; one that is being written is not there yet."""
        return Counter(str(row["kind"]) for row in read_rows(self._log)) if self._log.exists() else Counter()

    # Observer.

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Do nothing: an episode counts when it has ended."""

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: an episode counts when it has ended."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Add the episode."""
        self.add(episode.control, episode.facts)
