"""Labels for episodes as they are recorded: rounds over a store that grows.

It needs no lock of the store: an episode is there as a whole or not at all. An episode without an answer is queried
again in the next round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from robot_rl.config.labelling import LabelConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.store.layout import EPISODES, file_name
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.reward.answer import Answer
from robot_rl.reward.backend import Backend
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.units import Units
from robot_rl.reward.labels.valueless import ValuelessStreak

OnLabel = Callable[[EpisodeSummary, Answer, float | None, bool], object]
"""Receives the episode, the answer, the time from the end of its recording to the label [s], None if the label is not
new, and whether a query was made for it now."""


class Round(NamedTuple):
    """The result of one round.

    Attributes:
        left: Episodes without a label, which the next round queries again.
        why: The reason; empty if there are none.
        seconds: Duration of the queries [s].
    """

    left: tuple[str, ...]
    why: str
    seconds: float = 0.0


class StoreLabelling:
    """Labels each episode of a store once.

    Args:
        store: Directory of the episode store.
        config: Of the labeller.
        task: The instruction of the robot.
        labels: Where labels go.
        name: Of the labels.
        backend: Answers the queries.
        on_label: Receives each label, also those that were there before.
        wanted: Which episodes to label.
    """

    def __init__(
        self,
        store: Path,
        config: LabelConfig,
        task: str,
        labels: LabelStore,
        name: str,
        backend: Backend,
        *,
        on_label: OnLabel,
        wanted: Callable[[EpisodeSummary], bool] = lambda _: True,
    ) -> None:
        self._store, self._config, self._task = store, config, task
        self._labels, self._name, self._backend = labels, name, backend
        self._on_label, self._wanted = on_label, wanted
        self._labelled: set[str] = set()
        self._streak = ValuelessStreak()
        self._begun = False

    def round(self) -> Round:
        """Query for the episodes that have no label yet.

        Raises:
            ValuelessAnswersError: if too many answers in a row, of this round and those before, have no value.
        """
        with EpisodeStore.open(self._store) as store:
            rows = [row for row in store.summaries() if row.episode_id not in self._labelled and self._wanted(row)]
            if not rows:
                return Round((), "")
            units = Units(store, self._config, self._task, only=[row.episode_id for row in rows])
            if not self._begun:
                identity = query_identity(self._backend, self._config, self._task, units.camera)
                self._labels.begin(self._name, units.kind, identity, remembered_settings(self._config))
                self._begun = True
                for unit, row in zip(units, rows, strict=True):
                    if (answer := self._labels.find(self._name, unit.subject)) is not None:
                        self._report(row, answer, None, False)
            of = {row.episode_id: row for row in rows}
            work = Labelling(
                self._labels,
                self._name,
                self._backend,
                on_label=lambda subject, *rest: self._new(of[json.loads(subject)[0]["episode_id"]], *rest),
                streak=self._streak,
            )
            done = work.run(units)
        self._streak.check()
        left = tuple(name for name in of if name not in self._labelled)
        why = done.stopped or (f"{len(left)} queries were not answered" if left else "")
        return Round(left, why, done.seconds if done.queried else 0.0)

    def _new(self, row: EpisodeSummary, answer: Answer, queried: bool) -> None:
        file = self._store / EPISODES / file_name(row.position)
        self._report(row, answer, max(0.0, time.time() - file.stat().st_mtime), queried)

    def _report(self, row: EpisodeSummary, answer: Answer, lag: float | None, queried: bool) -> None:
        self._labelled.add(row.episode_id)
        self._on_label(row, answer, lag, queried)


def remembered_settings(config: LabelConfig) -> dict[str, Any]:
    """Return the settings as they are kept with the labels: files by their place, as trainings run elsewhere."""

    def placed(file: str) -> str:
        return str(Path(file).resolve()) if file else ""

    cascade = replace(config.cascade, head=placed(config.cascade.head))
    examples = replace(config.examples, store=placed(config.examples.store))
    head, prompt = placed(config.head), placed(config.prompt)
    return config_to_dict(replace(config, head=head, prompt=prompt, cascade=cascade, examples=examples))


def query_identity(backend: Backend, config: LabelConfig, task: str, camera: str) -> dict[str, object]:
    """Return all that an answer depends on besides the episode: the backend, the task, the camera and the frames."""
    shown = {"also": list(config.frames.also), "span": config.frames.span, "segment": config.segment}
    more = {key: value for key, value in shown.items() if value}  # labels that were made before there were these stay
    return {**backend.identity, "task": task, "camera": camera, "frames": config.frames.count, **more}
