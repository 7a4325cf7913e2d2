"""Recorded episodes as rows of the console's list, of a run that goes on or that another process records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_rl.data.operator_labels import operator_words
from robot_rl.data.schema import CUT, JUDGE, OVERRULED
from robot_rl.data.store import EpisodeStore
from robot_rl.env.task import TASK_JUDGE


def recorded_rows(path: Path, control_period: float, known: int = 0, most: int = 30) -> list[dict[str, Any]]:
    """What `Board.ended` takes, of the newest episodes of a store.

    Args:
        path: The store; its writer may go on writing.
        control_period: Time between steps [s].
        known: Episodes, from the first one, that are shown already.
        most: Rows.

    Raises:
        DataError: if the store cannot be read.
    """
    with EpisodeStore.open(path) as store:
        rows, newest = [], store.summaries()[known:][-most:]
        words = operator_words(store, [one.episode_id for one in newest])
        for one in newest:
            word, facts = words.get(one.episode_id), one.metadata
            rows.append(
                {
                    "id": one.episode_id,
                    "success": one.success,
                    "failure": facts.get("failure"),
                    "cut": facts.get(CUT),
                    "steps": one.length,
                    "seconds": one.length * control_period,
                    "led": 0,
                    "takeovers": 0,
                    "force_peak": None,
                    "judge": facts.get(JUDGE, TASK_JUDGE),
                    "overruled": facts.get(OVERRULED),
                    "label": None if word is None else {"success": word["success"], "who": word["who"]},
                }
            )
        return rows
