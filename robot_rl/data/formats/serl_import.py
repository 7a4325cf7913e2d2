"""Reads what SERL and HIL-SERL record: pickles with a list of transitions, into episodes.

A transition has `observations` (a dictionary of `state` and of one frame per camera, each with a leading axis of the
history), `actions`, `next_observations`, `rewards` and `dones`. Demonstrations are one file; a run writes its buffers
as `transitions_<step>.pkl`, which follow each other. Their `dones` is true at a time-out as well, and no stamp is
recorded. So a positive last reward is a success, which terminates the episode; every other end truncates it; stamps are
counted at the rate of control.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.formats.inert_pickle import OpaqueObject, load_inert
from robot_rl.data.schema import Episode, Source
from robot_rl.errors import DataError
from robot_rl.system.printable import one_line

RATE = 10.0
"""SERL's rate of control [Hz]."""
ENDINGS = (".pkl", ".pickle")
_NEEDED = ("observations", "actions", "next_observations", "rewards", "dones")

Transition = Mapping[str, Any]


class SerlReader:
    """Read the episodes of a file, or of all files of a directory in the order of their numbers.

    Args:
        path: Pickle, or directory of pickles.
        action_scale: What actions are divided by, so that they lie in [-1, 1].
        source: Who acted; SERL does not record it.
        rate: Of control [Hz].

    Raises:
        DataError: if there is no pickle.
    """

    def __init__(
        self, path: Path, *, action_scale: float = 1.0, source: Source = Source.HUMAN, rate: float = RATE
    ) -> None:
        self.path, self._scale, self._source, self._period = path, action_scale, source, 1e9 / rate
        self._files = serl_files(path)
        if not self._files:
            raise DataError(f"{path}: no pickle there; SERL's end in {' or '.join(ENDINGS)}")
        self.metadata: dict[str, Any] = {"imported_from": path.name}

    def episodes(self) -> Iterator[Episode]:
        """Read the episodes; one file is in memory at a time.

        Raises:
            DataError: naming the file, the transition and what is wrong with it.
        """
        number = 0
        running: list[Transition] = []
        for file in self._files:
            for where, transition in self._transitions(file):
                if running and not _follows(running[-1], transition):
                    yield self._episode(number, running, file)
                    number, running = number + 1, []
                running.append(transition)
                if _flag(transition, "dones", where):
                    yield self._episode(number, running, file)
                    number, running = number + 1, []
        if running:
            yield self._episode(number, running, self._files[-1])

    def _transitions(self, file: Path) -> Iterator[tuple[str, Transition]]:
        loaded = load_inert(file)
        if not isinstance(loaded, list):
            raise DataError(f"{file}: holds a {type(loaded).__name__}; SERL writes a list of transitions")
        for index, transition in enumerate(loaded):
            where = f"{file}: transition {index}"
            if not isinstance(transition, dict) or not set(_NEEDED) <= transition.keys():
                known = sorted(map(str, transition)) if isinstance(transition, dict) else type(transition).__name__
                raise DataError(f"{where}: has {known}, must have {', '.join(_NEEDED)}")
            checked = {key: transition[key] for key in ("rewards", "dones")}
            checked["actions"] = _numbers(transition["actions"], f"{where}, actions").ravel()
            for key in ("observations", "next_observations"):
                checked[key] = _observation(transition[key], f"{where}, {key}")
            yield where, checked

    def _episode(self, number: int, transitions: Sequence[Transition], file: Path) -> Episode:
        where = f"{file}: episode {number}"
        rows = [*(one["observations"] for one in transitions), transitions[-1]["next_observations"]]
        if differing := next((row for row in rows if _shapes(row) != _shapes(rows[0])), None):
            raise DataError(f"{where}: observations change from {_shapes(rows[0])} to {_shapes(differing)}")
        action = _stacked([one["actions"] for one in transitions], where).astype(np.float32) / np.float32(self._scale)
        if (size := np.abs(action).max(initial=0.0)) > 1.0:
            raise DataError(
                f"{where}: actions up to {size:.6g}, must lie in [-1, 1]; divide them with "
                f"--action-scale {size * self._scale:.6g} or more"
            )
        reward = np.array([_real(one, "rewards", where) for one in transitions], np.float32)
        ended, success = _flag(transitions[-1], "dones", where), bool(reward[-1] > 0)
        steps = len(transitions)
        last = np.arange(steps) == steps - 1
        stamps = np.round(np.arange(steps + 1) * self._period).astype(np.int64)
        return Episode(
            episode_id=f"episode-{number:06d}",
            observations={key: np.stack([row[key] for row in rows]) for key in sorted(rows[0])},
            action=action,
            action_policy=action,
            source=np.full(steps, self._source, np.int8),
            reward=reward,
            terminated=last & (ended and success),
            truncated=last & ~(ended and success),
            stamp_obs=stamps,
            stamp_action=stamps[:-1],
            reward_source="dataset",
            metadata={"success": success} | ({} if ended else {"cut": "the recording ends within the episode"}),
        )


def serl_files(path: Path) -> list[Path]:
    """Return the pickles of a path, in the order of the numbers in their names; empty if there are none."""
    if path.suffix in ENDINGS:
        return [path]
    found = [file for file in path.iterdir() if file.suffix in ENDINGS] if path.is_dir() else []
    return sorted(found, key=lambda file: ([int(digits) for digits in re.findall(r"\d+", file.stem)], file.name))


def _observation(value: Any, where: str) -> dict[str, np.ndarray]:
    """Return the newest of an observation's history, as `state/<name>` and `images/<camera>`."""
    if not isinstance(value, dict) or not value:
        raise DataError(f"{where}: {_kind(value)}, must be a dictionary of `state` and frames")
    rows = {}
    for key, entry in value.items():
        if isinstance(entry, dict):  # not flattened yet: `state` of several vectors, `images` of cameras
            rows.update(_observation({f"{key}.{name}": part for name, part in entry.items()}, where))
            continue
        array = _numbers(entry, f"{where}, {one_line(str(key))}")
        name = str(key).removeprefix("images.").removeprefix("state.")
        if array.dtype == np.uint8 and array.ndim in (3, 4):
            rows[f"images/{name}"] = array[-1] if array.ndim == 4 else array
        else:
            rows[f"state/{name}"] = (array[-1] if array.ndim > 1 else np.atleast_1d(array)).astype(np.float32)
    return rows


def _numbers(value: Any, where: str) -> np.ndarray:
    array = np.asarray(value) if isinstance(value, np.ndarray | np.generic | int | float | bool | list) else None
    if array is None or array.dtype.kind not in "biuf":
        raise DataError(f"{where}: {_kind(value)}, must be an array of numbers")
    return array


def _stacked(rows: Sequence[np.ndarray], where: str) -> np.ndarray:
    if len(sizes := {len(row) for row in rows}) > 1:
        raise DataError(f"{where}: actions of {' and '.join(map(str, sorted(sizes)))} elements")
    return np.stack(rows)


def _real(transition: Transition, key: str, where: str) -> float:
    return float(_numbers(transition[key], f"{where}, {key}").reshape(-1)[0])


def _flag(transition: Transition, key: str, where: str) -> bool:
    return bool(_real(transition, key, where))


def _kind(value: Any) -> str:
    return f"an object of {one_line(value.name)}" if isinstance(value, OpaqueObject) else f"a {type(value).__name__}"


def _shapes(row: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {key: value.shape for key, value in row.items()}


def _follows(before: Transition, after: Transition) -> bool:
    """Return whether a transition begins where the one before it led to."""
    led, begins = before["next_observations"], after["observations"]
    return _shapes(led) != _shapes(begins) or all(np.array_equal(led[key], begins[key], equal_nan=True) for key in led)
