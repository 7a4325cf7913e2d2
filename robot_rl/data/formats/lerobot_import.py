"""Reads a LeRobotDataset, version 3.0, into episodes; one that we wrote comes back exactly, but for videos."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from robot_rl.data.formats.lerobot_layout import (
    CODEBASE_VERSION,
    EXTRA,
    EXTRA_VERSION,
    FINAL,
    IMAGES,
    Column,
    need_pyarrow,
)
from robot_rl.data.formats.lerobot_paths import below, filled
from robot_rl.data.schema import (
    ARMS_COLUMN,
    ARMS_VERSION,
    BASE_COLUMN,
    FASTEST,
    SCHEMA_VERSION,
    Episode,
    Source,
)
from robot_rl.errors import DataError
from robot_rl.system.checked_json import parse_json

_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,  # of pyarrow, for types that it cannot convert
    MemoryError,  # of arrays whose head names a size that is not true
    SyntaxError,  # of Pillow, for broken PNG
    zipfile.BadZipFile,
    zlib.error,
    Image.DecompressionBombError,
)
"""What readers raise for content that is damaged or not true."""
_OURS = "complementary_info."
_SUCCESS = "next.success"
_META = ("timestamp", "frame_index", "episode_index", "index", "task_index")


class LeRobotReader:
    """Read the episodes of a dataset in a local directory.

    A dataset of others has no observation after the last step: its last frame stands for it, and the metadata entry
    `final_observation` marks that. There, whoever acted counts as `source`, success is the last `next.success`, or
    without that a last reward above zero, and an episode without success counts as truncated.

    Args:
        path: Directory of the dataset.
        action_scale: What actions of others are divided by, so that they lie in [-1, 1].
        source: Who acted in a dataset of others.

    Attributes:
        metadata: Facts about all episodes, for a store.

    Raises:
        DataError: if it is not a dataset of this version.
        PluginError: if pyarrow is not installed.
    """

    def __init__(self, path: Path, *, action_scale: float = 1.0, source: Source = Source.HUMAN) -> None:
        need_pyarrow()
        self.path, self._scale, self._source = path, action_scale, source
        self._info = self._json("meta/info.json")
        if self._info.get("codebase_version") != CODEBASE_VERSION:
            raise DataError(
                f"{path}: is a LeRobotDataset {self._info.get('codebase_version')!r}, this program reads "
                f"{CODEBASE_VERSION}; LeRobot converts older ones"
            )
        self._features = self._checked_features()
        self._fps = self._checked_rate()
        self._rows = self._table("meta/episodes").to_pylist()
        extra = self._json(EXTRA) if (path / EXTRA).is_file() else None
        if extra is not None and extra.get("version") != EXTRA_VERSION:
            raise DataError(f"{path / EXTRA}: version {extra.get('version')}, this program reads {EXTRA_VERSION}")
        self._extra = extra
        try:
            self._columns = self._find_columns()
            self.metadata = self._store_metadata()
        except _UNREADABLE as error:
            raise DataError(f"{path}: its index is not true: {type(error).__name__}: {error}") from error

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self._rows)

    def _store_metadata(self) -> dict[str, Any]:
        if self._extra is not None:
            return dict(self._extra["store"])
        tasks = {task for row in self._rows for task in row["tasks"]}
        facts = {"task": min(tasks)} if len(tasks) == 1 else {"tasks": sorted(tasks)}
        return {**facts, "imported_from": self.path.name}

    def episodes(self) -> Iterator[Episode]:
        """Read the episodes, one in memory at a time.

        Raises:
            DataError: if one cannot be read, naming it and what is wrong.
        """
        for number, row in enumerate(self._rows):
            try:
                yield self._episode(number, row)
            except _UNREADABLE as error:
                raise DataError(f"{self.path}: episode {number}: {type(error).__name__}: {error}") from error

    def _episode(self, number: int, row: Mapping[str, Any]) -> Episode:
        place = {"chunk_index": row["data/chunk_index"], "file_index": row["data/file_index"]}
        name = filled(self._info.get("data_path"), place, "data_path of meta/info.json")
        table = self._parquet(below(self.path, name, "data_path of meta/info.json"))
        chosen = np.flatnonzero(table.column("episode_index").to_numpy() == row["episode_index"])
        table = table.take(chosen)
        if len(chosen) != row["length"]:
            raise ValueError(f"has {len(chosen)} frames, the index has {row['length']}")
        features = {name: _numpy(table.column(name)) for name in table.column_names if name not in self._pictures()}
        rows = {column.key: self._column(column, features, table, row) for column in self._columns}
        if self._extra is not None:
            return self._ours(number, features, rows)
        return self._foreign(number, row, features, rows)

    def _ours(self, number: int, features: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray]) -> Episode:
        facts = (self._extra or {})["episodes"][number]
        with np.load(below(self.path, FINAL.format(number), EXTRA), allow_pickle=False) as final:
            observations = {key: np.concatenate([value, final[key][None]]) for key, value in rows.items()}
            stamp = final["stamp_obs"]
            proposals, arm_sources = final.get(BASE_COLUMN), final.get(ARMS_COLUMN)
        return Episode(
            episode_id=facts["episode_id"],
            observations=observations,
            action=features["action"],
            action_policy=features[_OURS + "action_policy"],
            source=features[_OURS + "source"].astype(np.int8).ravel(),
            reward=features["next.reward"].ravel(),
            terminated=features["next.terminated"].ravel(),
            truncated=features["next.truncated"].ravel(),
            stamp_obs=np.concatenate([features[_OURS + "stamp_obs"].ravel(), stamp]),
            stamp_action=features[_OURS + "stamp_action"].ravel(),
            reward_source=facts["reward_source"],
            metadata=facts["metadata"],
            schema_version=SCHEMA_VERSION if arm_sources is None else ARMS_VERSION,
            action_base=proposals,
            arm_sources=arm_sources,
        )

    def _foreign(
        self,
        number: int,
        row: Mapping[str, Any],
        features: Mapping[str, np.ndarray],
        rows: Mapping[str, np.ndarray],
    ) -> Episode:
        length = int(row["length"])
        action = (features["action"] / np.float32(self._scale)).astype(np.float32)
        if (size := np.abs(action).max(initial=0.0)) > 1.0:
            raise DataError(
                f"{self.path}: feature action of episode {number}: up to {size:.6g}, must lie in [-1, 1]; "
                f"divide it with --action-scale {size * self._scale:.6g} or more"
            )
        reward = features["next.reward"].astype(np.float32).ravel() if "next.reward" in features else None
        success = bool(reward[-1] > 0) if reward is not None else None
        if _SUCCESS in features:  # a dense reward is above zero in failures, too
            success = bool(features[_SUCCESS].ravel()[-1])
        last = np.arange(length) == length - 1
        self._check_stamps(number, features)
        stamps = np.round(np.arange(length) * (1e9 / self._fps)).astype(np.int64)
        period = round(1e9 / self._fps)
        return Episode(
            episode_id=f"episode-{row['episode_index']:06d}",
            observations={key: np.concatenate([value, value[-1:]]) for key, value in rows.items()},
            action=action,
            action_policy=action,
            source=np.full(length, self._source, np.int8),
            reward=np.zeros(length, np.float32) if reward is None else reward,
            terminated=last & bool(success),
            truncated=last & (not success),
            stamp_obs=np.append(stamps, stamps[-1] + period),
            stamp_action=stamps,
            reward_source="none" if reward is None else "dataset",
            metadata={"success": success, "tasks": row["tasks"], "final_observation": "repeated"},
        )

    def _checked_features(self) -> Mapping[str, Mapping[str, Any]]:
        features = self._info.get("features")
        if not isinstance(features, dict) or not all(
            isinstance(feature, dict)
            and isinstance(feature.get("dtype"), str)
            and isinstance(feature.get("shape"), list)
            and all(isinstance(size, int) and size >= 0 for size in feature["shape"])
            for feature in features.values()
        ):
            raise DataError(f"{self.path / 'meta/info.json'}: features must map names to a dtype and a shape each")
        return features

    def _checked_rate(self) -> float:
        rate = self._info.get("fps")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= FASTEST:
            raise DataError(f"{self.path / 'meta/info.json'}: fps is {rate!r}, must be above 0 and at most {FASTEST:g}")
        return float(rate)

    def _check_stamps(self, number: int, features: Mapping[str, np.ndarray]) -> None:
        """Refuse frames that are out of order: no period could be trusted."""
        for name in ("timestamp", "frame_index"):
            if name in features and len(falls := np.flatnonzero(~(np.diff(features[name].ravel()) > 0))):
                raise DataError(f"{self.path}: episode {number}: {name} does not increase at frame {falls[0] + 1}")

    def _find_columns(self) -> list[Column]:
        if self._extra is not None:
            return [Column(**{**column, "shape": tuple(column["shape"])}) for column in self._extra["columns"]]
        columns = []
        for name, feature in self._features.items():
            shape = tuple(feature["shape"])
            if name in self._pictures():
                columns.append(Column(f"images/{name.removeprefix(IMAGES)}", name, 0, shape, "uint8"))
            elif name.startswith("observation."):
                columns.append(Column(f"state/{name.removeprefix('observation.')}", name, 0, shape, feature["dtype"]))
        if "action" not in self._features:
            raise DataError(f"{self.path}: no feature `action`; it has {sorted(self._features)}")
        return columns

    def _pictures(self) -> set[str]:
        return {name for name, feature in self._features.items() if feature["dtype"] in ("image", "video")}

    def _column(
        self, column: Column, features: Mapping[str, np.ndarray], table: Any, row: Mapping[str, Any]
    ) -> np.ndarray:
        if column.feature not in self._pictures():
            feature = features[column.feature]
            part = feature.reshape(len(feature), -1)[:, column.start : column.start + column.size]
            return np.ascontiguousarray(part.reshape(len(feature), *column.shape), column.dtype)
        if self._features[column.feature]["dtype"] == "video":
            return self._video(column.feature, row)
        frames = []
        for cell in table.column(column.feature).to_pylist():
            where = f"path of a picture of {column.feature}"
            picture: Image.Image = Image.open(
                io.BytesIO(cell["bytes"]) if cell["bytes"] else below(self.path, cell["path"], where)
            )
            if picture.mode in ("P", "PA"):  # their pixels are places in a palette, no colours
                picture = picture.convert("RGB")
            pixels = np.asarray(picture)
            if pixels.dtype != np.uint8:
                raise ValueError(f"a picture of {column.feature} is {picture.mode}, must have 8 bits per channel")
            frames.append(pixels.reshape(picture.height, picture.width, -1))
        return np.stack(frames)

    def _video(self, feature: str, row: Mapping[str, Any]) -> np.ndarray:
        """Return the frames of an episode, which may be a part of a file."""
        place = {key: row[f"videos/{feature}/{key}"] for key in ("chunk_index", "file_index")}
        where = "video_path of meta/info.json"
        path = below(self.path, filled(self._info.get("video_path"), {"video_key": feature, **place}, where), where)
        first = round(row[f"videos/{feature}/from_timestamp"] * self._fps)
        wanted, frames = range(first, first + row["length"]), []
        with av.open(str(path)) as container:
            for number, frame in enumerate(container.decode(video=0)):
                if number in wanted:
                    frames.append(frame.to_ndarray(format="rgb24"))
                if number >= wanted.stop:
                    break
        if len(frames) != row["length"]:
            raise ValueError(f"{path}: {len(frames)} frames, the index has {row['length']}")
        return np.stack(frames)

    def _table(self, folder: str) -> Any:
        pa, _ = need_pyarrow()
        files = sorted((self.path / folder).glob("*/*.parquet"))
        if not files:
            raise DataError(f"{self.path / folder}: holds no parquet files; the dataset is incomplete")
        names = [str(file.relative_to(self.path)) for file in files]
        tables = [self._parquet(below(self.path, name, folder)) for name in names]
        return pa.concat_tables(
            [table.select([n for n in table.column_names if "stats/" not in n]) for table in tables]
        )

    def _parquet(self, path: Path) -> Any:
        _, pq = need_pyarrow()
        try:
            return pq.read_table(path)
        except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
            raise DataError(f"{path}: cannot be read: {error}") from error

    def _json(self, name: str) -> dict[str, Any]:
        try:
            return dict(parse_json((self.path / name).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{self.path / name}: no LeRobotDataset there: {error}") from error


def _numpy(column: Any) -> np.ndarray:
    """Return a column as an array of shape (rows,) or (rows, elements)."""
    array = column.combine_chunks()
    values = array.flatten() if hasattr(array, "flatten") and array.type.num_fields else array
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(array), -1)
