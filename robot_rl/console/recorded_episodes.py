"""Recorded episodes for the page, to replay and to label. They are read beside the writer of the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.console.snapshot import jpeg
from robot_rl.console.turns_state import own_name
from robot_rl.data.interventions import take_overs
from robot_rl.data.schema import IMAGE_PREFIX, OPERATOR_SOURCES, Episode, Source
from robot_rl.data.store.layout import EPISODES, file_name, find_store
from robot_rl.data.store.operator_labels import label_episode, operator_words
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task import TASK_JUDGE
from robot_rl.errors import UnknownNameError


def recorded_rows(path: Path, control_period: float, known: int = 0, most: int = 30) -> list[dict[str, Any]]:
    """Return the rows of the newest episodes of a store, for `JobState.ended`.

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
        labels = operator_words(store, [one.episode_id for one in newest])
        for one in newest:
            label, facts = labels.get(one.episode_id), one.facts
            sources = store.sources(one.episode_id)
            rows.append(
                {
                    "id": one.episode_id,
                    "demonstration": facts.demonstration,
                    "success": one.success,
                    "failure": facts.failure,
                    "cut": facts.cut,
                    "steps": one.length,
                    "seconds": one.length * control_period,
                    "led": int(np.isin(sources, OPERATOR_SOURCES).sum()),
                    "takeovers": len(take_overs(sources.tolist())),
                    "force_peak": None,
                    "judge": facts.judge or TASK_JUDGE,
                    "overruled": facts.overruled,
                    "label": None if label is None else {"success": label["success"], "who": label["who"]},
                }
            )
        return rows


def recorded_at(path: Path) -> dict[str, float]:
    """Return when each episode of a store was written, by its name [s since 1970].

    Raises:
        DataError: if the store cannot be read.
    """
    with EpisodeStore.open(path) as store:
        files = {one.episode_id: path / EPISODES / file_name(one.position) for one in store.summaries()}
    return {episode_id: file.stat().st_mtime for episode_id, file in files.items()}


class Archive:
    """The episodes of one store, or of several tasks that take turns.

    Args:
        path: The store, or a run that has one, or will have; of tasks that take turns, those of each by its name.
    """

    def __init__(self, path: Path | Mapping[str, Path]) -> None:
        self._paths = {"": path} if isinstance(path, Path) else dict(path)
        self._newest: Episode | None = None
        self._shown = ""  # the name under which the page knows that one

    def replay(self, episode_id: str) -> dict[str, Any]:
        """Return what is drawn of an episode, step by step.

        Raises:
            DataError: if there is no such episode.
        """
        episode = self._read(episode_id)
        wrench = episode.observations.get("state/wrench")
        pose = episode.observations.get("state/tcp_pose")
        return {
            "id": episode_id,
            "steps": len(episode),
            "seconds": ((episode.stamp_obs - episode.stamp_obs[0]) / 1e9).round(3).tolist(),
            "source": [Source(value).name.lower() for value in episode.source.tolist()],
            "reward": episode.reward.tolist(),
            "action": np.abs(episode.action).max(axis=1).round(3).tolist(),
            "force": [] if wrench is None else np.linalg.norm(wrench[:, :3], axis=1).round(2).tolist(),
            "position": [] if pose is None else pose[:, :3].round(5).tolist(),
            "cameras": [key.removeprefix(IMAGE_PREFIX) for key in episode.observations if key.startswith(IMAGE_PREFIX)],
            "metadata": dict(episode.metadata),
            "judge": episode.reward_source,
            "label": self._label(episode_id),
        }

    def frame(self, episode_id: str, camera: str, step: int) -> bytes:
        """Return one frame as JPEG.

        Raises:
            DataError: if there is no such episode.
            UnknownNameError: if it has no such camera.
        """
        episode = self._read(episode_id)
        frames = episode.observations.get(f"images/{camera}")
        if frames is None:
            cameras = [key.removeprefix(IMAGE_PREFIX) for key in episode.observations if key.startswith(IMAGE_PREFIX)]
            raise UnknownNameError("camera", camera, cameras)
        return jpeg(frames[min(max(step, 0), len(frames) - 1)])

    def label(self, episode_id: str, success: bool, who: str) -> str:
        """Write the label of an episode beside its rewards; return the name of the overlay.

        Raises:
            DataError: if there is no such episode, or each of its steps is labelled.
            RunDirectoryError: if it cannot be written.
        """
        store, own = self._find(episode_id)
        return label_episode(store, own, success, who)

    def _find(self, episode_id: str) -> tuple[Path, str]:
        """Return the store of an episode, and its name there; the actor of another process may only begin to record.

        Raises:
            DataError: if there is no store yet.
            UnknownNameError: if it is of no task that takes part.
        """
        task, own = own_name(episode_id) if "" not in self._paths else ("", episode_id)
        if task not in self._paths:
            raise UnknownNameError("task", task, self._paths)
        return find_store(self._paths[task]), own

    def _label(self, episode_id: str) -> dict[str, Any] | None:
        """Return the newest label of an episode by an operator; None if there is none."""
        path, own = self._find(episode_id)
        with EpisodeStore.open(path) as store:
            return operator_words(store, (own,)).get(own)

    def _read(self, episode_id: str) -> Episode:
        """Read an episode; the last one is kept, because a page requests many of its frames."""
        if self._newest is None or self._shown != episode_id:
            path, own = self._find(episode_id)
            with EpisodeStore.open(path) as store:
                self._newest, self._shown = store.read(own), episode_id
        return self._newest
