"""The writer of stores as LeRobotDatasets, version 3.0; `lerobot_layout.py` has the layout."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from robot_rl.data.formats.lerobot_layout import (
    CHUNK,
    CODEBASE_VERSION,
    DATA_PATH,
    ENVIRONMENT_STATE,
    EPISODES_PATH,
    EXTRA,
    EXTRA_VERSION,
    FINAL,
    NOT_HELD,
    TASKS_PATH,
    VIDEO_PATH,
    Column,
    columns_of,
    element_names,
    need_pyarrow,
    stack_state,
    step_features,
)
from robot_rl.data.formats.lerobot_stats import Statistics
from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.data.schema import ARMS_COLUMN, BASE_COLUMN, IMAGE_PREFIX, Episode
from robot_rl.data.store.info import control_rate
from robot_rl.data.store.operator_labels import outcomes
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.system.atomic_file import write_atomically, writing
from robot_rl.system.build_aside import build_aside

ImageFormat = Literal["png", "video"]
VIDEO_OPTIONS = {"crf": "12", "preset": "medium", "g": "2"}
"""Of H.264: near to lossless, and any frame can be found quickly."""
SCATTER = 0.02
"""By how much a rate by the stamps may miss a whole number and still be taken for it, as a share."""
OTHER_RATE = 0.1
"""From here on an episode has another rate than the dataset, as a share."""
FEWEST_STAMPS = 5
"""Of an episode whose rate is compared."""


def export_lerobot(
    store: EpisodeStore,
    out: Path,
    *,
    images: ImageFormat = "png",
    fps: float | None = None,
    task: str | None = None,
    successes: bool = False,
    scene: Collection[str] = (),
    on_episode: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Write the episodes of a store into a new directory, which is there once it is whole.

    Args:
        store: The store.
        out: The directory; must not exist, or be empty.
        images: `png` is lossless; `video` is H.264, much smaller, with loss.
        fps: Frames per second; None takes the rate of the stamps, which has to be the same in all episodes.
        task: Instruction of the task; None takes the store's `task`, or else that of each episode, as of an imported
            dataset of several tasks.
        successes: Only the episodes that succeeded, a person's later label included: imitation does not tell them from
            the others.
        scene: Keys of the vectors that describe the scene and not the robot; see `columns_of`.
        on_episode: Called after each.

    Returns:
        Counts, and `beside`: what the format has no place for and therefore lies in files beside it.

    Raises:
        DataError: if the store is empty, or the format cannot hold its episodes, e.g. of several rates.
        PluginError: if pyarrow is not installed.
        RunDirectoryError: if it cannot be written.
    """
    need_pyarrow()
    ids = [name for name, success in outcomes(store).items() if success] if successes else store.ids()
    if not ids:
        which = f", none of its {len(store)} succeeded" if successes and len(store) else ""
        raise DataError(f"{store.path}: holds no episodes to export{which}")
    first = store.read(ids[0])
    columns = columns_of(first, scene)
    rate = fps or _frame_rate(first.stamp_obs)
    if rate is None:
        raise DataError(f"{store.path}: its stamps do not give the frame rate; give it with --fps")
    with build_aside(out) as built:
        writer = _Writer(built, columns, images, rate, task or str(store.metadata.get("task") or ""))
        for episode_id in ids:
            episode = store.read(episode_id)
            if fps is None:
                _check_rate(episode, rate)
            writer.add(episode)
            on_episode()
        writer.finish(store)
    return {"episodes": len(ids), "frames": writer.frames, "fps": rate, "images": images, "beside": list(NOT_HELD)}


def _frame_rate(stamps: np.ndarray) -> float | None:
    """Return the rate of stamps; a whole number where it is near to one, as datasets are joined only at equal rates."""
    rate = control_rate(stamps)
    if rate is None:
        return None
    whole = float(round(rate))
    return whole if abs(rate - whole) <= SCATTER * whole else rate


def _check_rate(episode: Episode, rate: float) -> None:
    """Raise an error if an episode was recorded at another rate than the dataset has."""
    own = control_rate(episode.stamp_obs)
    if own is None or len(episode.stamp_obs) < FEWEST_STAMPS or abs(own - rate) <= OTHER_RATE * rate:
        return
    raise DataError(
        f"episode {episode.episode_id}: {own:g} steps a second, the first one {rate:g}; a LeRobotDataset has one rate: "
        "export these episodes apart, or give the rate that all shall have with --fps"
    )


class _Writer:
    """Write the files of a dataset, one episode per data file."""

    def __init__(self, out: Path, columns: list[Column], images: ImageFormat, fps: float, task: str) -> None:
        self._out, self._columns, self._images, self._fps, self._task = out, columns, images, fps, task
        self._scene = [column.key for column in columns if column.feature == ENVIRONMENT_STATE]
        self._tasks: dict[str, int] = {}
        self._episodes: list[dict[str, Any]] = []
        self._facts: list[dict[str, Any]] = []
        self._statistics = Statistics()
        self._features: dict[str, dict[str, Any]] = {}
        self.frames = 0

    def add(self, episode: Episode) -> None:
        if columns_of(episode, self._scene) != self._columns:
            raise DataError(
                f"episode {episode.episode_id}: its observations differ from those of the episodes before it; "
                "`robot-rl data verify` shows how, `robot-rl data prune` takes it out"
            )
        number, length = len(self._episodes), len(episode)
        vectors = {**stack_state(self._columns, episode.observations, length), **step_features(episode)}
        steps, tasks = np.arange(length), self._tasks_of(episode)
        vectors |= {
            "timestamp": (steps / self._fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(length, number),
            "index": self.frames + steps,
            "task_index": np.full(length, self._tasks[tasks[0]]),
        }
        cameras = [column for column in self._columns if column.key.startswith(IMAGE_PREFIX)]
        pictures = {column.feature: episode.observations[column.key][:length] for column in cameras}
        place = {"chunk_index": number // CHUNK, "file_index": number % CHUNK}
        row: dict[str, Any] = {
            "episode_index": number,
            "tasks": tasks,
            "length": length,
            "dataset_from_index": self.frames,
            "dataset_to_index": self.frames + length,
            **{f"data/{key}": value for key, value in place.items()},
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }
        with writing(self._out):
            if self._images == "video":
                for feature, frames in pictures.items():
                    path = self._out / VIDEO_PATH.format(video_key=feature, **place)
                    with Mp4Writer(path, self._fps, VIDEO_OPTIONS) as video:
                        for frame in frames:
                            video.add(frame)
                    row |= {f"videos/{feature}/{key}": value for key, value in place.items()}
                    row |= {
                        f"videos/{feature}/from_timestamp": 0.0,
                        f"videos/{feature}/to_timestamp": length / self._fps,
                    }
            self._write_data(self._out / DATA_PATH.format(**place), vectors, pictures)
            final: dict[str, Any] = {key: column[-1] for key, column in episode.observations.items()}
            if episode.action_base is not None:
                final[BASE_COLUMN] = episode.action_base
            if episode.arm_sources is not None:
                final[ARMS_COLUMN] = episode.arm_sources
            path = self._out / FINAL.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, stamp_obs=episode.stamp_obs[-1:], **final)
        self._features = self._features or self._describe(vectors, pictures)
        self._episodes.append(row | self._statistics.add({**vectors, **pictures}))
        self._facts.append(
            {
                "episode_id": episode.episode_id,
                "metadata": dict(episode.metadata),
                "reward_source": episode.reward_source,
            }
        )
        self.frames += length

    def finish(self, store: EpisodeStore) -> None:
        """Write what describes the whole; `meta/info.json` last, so that half a dataset is none."""
        pa, pq = need_pyarrow()
        with writing(self._out):
            (self._out / EPISODES_PATH).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(self._episodes), self._out / EPISODES_PATH)
            tasks = pa.table({"task_index": pa.array(self._tasks.values(), pa.int64()), "task": list(self._tasks)})
            pq.write_table(tasks.replace_schema_metadata({"pandas": json.dumps(_PANDAS)}), self._out / TASKS_PATH)
        extra = {
            "version": EXTRA_VERSION,
            "store": dict(store.metadata),
            "columns": [asdict(column) for column in self._columns],
            "episodes": self._facts,
        }
        info = {
            "codebase_version": CODEBASE_VERSION,
            "robot_type": None,
            "total_episodes": len(self._episodes),
            "total_frames": self.frames,
            "total_tasks": len(self._tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": int(self._fps) if float(self._fps).is_integer() else self._fps,
            "splits": {"train": f"0:{len(self._episodes)}"},
            "data_path": DATA_PATH,
            "video_path": VIDEO_PATH if self._images == "video" else None,
            "features": self._features,
        }
        for name, value in ((EXTRA, extra), ("meta/stats.json", self._statistics.whole()), ("meta/info.json", info)):
            write_atomically(self._out / name, json.dumps(value, indent=2) + "\n")

    def _tasks_of(self, episode: Episode) -> list[str]:
        """Return the instructions of an episode, which have an index each then."""
        own = episode.metadata.get("tasks")  # of an imported dataset of several tasks
        tasks = [self._task] if self._task else list(map(str, own)) if isinstance(own, list) and own else ["task"]
        for task in tasks:
            self._tasks.setdefault(task, len(self._tasks))
        return tasks

    def _write_data(self, path: Path, vectors: dict[str, np.ndarray], pictures: dict[str, np.ndarray]) -> None:
        pa, pq = need_pyarrow()
        arrays = {}
        for feature, values in vectors.items():
            rows = values.reshape(len(values), -1)
            flat = pa.array(rows.ravel())
            arrays[feature] = flat if rows.shape[1] == 1 else pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
        if self._images == "png":
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            for feature, frames in pictures.items():
                arrays[feature] = pa.array([{"bytes": _png(frame), "path": None} for frame in frames], kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(arrays), path)

    def _describe(self, vectors: dict[str, np.ndarray], pictures: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        names = element_names(self._columns)
        features: dict[str, dict[str, Any]] = {}
        for feature, values in vectors.items():
            width = values.reshape(len(values), -1).shape[1]
            features[feature] = {"dtype": values.dtype.name, "shape": [width], "names": names.get(feature)}
        for feature, frames in pictures.items():
            dtype = "video" if self._images == "video" else "image"
            axes = ["height", "width", "channels"]
            features[feature] = {"dtype": dtype, "shape": list(frames.shape[1:]), "names": axes}
            if dtype == "video":
                features[feature]["info"] = {
                    "video.height": frames.shape[1],
                    "video.width": frames.shape[2],
                    "video.channels": 3,
                    "video.codec": "h264",
                    "video.pix_fmt": "yuv420p",
                    "video.is_depth_map": False,
                    "video.fps": self._fps,
                    "has_audio": False,
                }
        return features


_PANDAS = {
    "index_columns": ["task"],
    "column_indexes": [],
    "columns": [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy_type, "metadata": None}
        for name, kind, numpy_type in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
    ],
    "pandas_version": "2.0.0",
}
"""Metadata for pandas: the task is the index, which LeRobot expects."""


def _png(frame: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(frame[..., 0] if frame.shape[2] == 1 else frame).save(content, "png", compress_level=1)
    return content.getvalue()
