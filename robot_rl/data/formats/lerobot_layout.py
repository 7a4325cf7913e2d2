"""The map from an episode's columns to the features of a LeRobotDataset, version 3.0.

    observation.state                  all float32 `state/...` columns side by side, named in `names`
    observation.environment_state      those of them that describe the scene and not the robot, if some are named
    observation.<what>                 `state/<what>` of another dtype
    observation.images.<camera>        frames, as PNG in the data (lossless) or as a video
    action                             executed
    next.reward, next.done             `next.done` is terminated or truncated
    next.terminated, next.truncated
    complementary_info.action_policy, .source, .stamp_obs, .stamp_action

That format has one observation per step, no episode ids and no metadata per episode. What it cannot hold lies in files
of ours beside it, which its own loader ignores: `meta/robot_rl.json`, and `robot_rl/episode-000000.npz` with the
observation that the last step led to and its stamp, with what a base policy proposed, and with who led each of several
arms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.errors import DataError, PluginError

CODEBASE_VERSION = "v3.0"
EXTRA_VERSION = 1
EXTRA = "meta/robot_rl.json"
FINAL = "robot_rl/episode-{:06d}.npz"
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-000/file-000.parquet"
TASKS_PATH = "meta/tasks.parquet"
CHUNK = 1000
"""Files in a folder; each holds one episode."""
IMAGES, STATE, ENVIRONMENT_STATE = "observation.images.", "observation.state", "observation.environment_state"
_VECTORS = (STATE, ENVIRONMENT_STATE)
NOT_HELD = (
    "the observation after the last step, and its stamp",
    "episode ids and metadata",
    "who gave the rewards",
    "shapes of more than one dimension, and which columns `observation.state` was made of",
    "what a base policy proposed, and who led each of several arms",
)
"""Facts without a place in a LeRobotDataset; kept in files beside it."""


@dataclass(frozen=True)
class Column:
    """Where an observation column is.

    Attributes:
        key: Ours, e.g. `state/tcp_pose`.
        feature: Theirs.
        start: First element within the feature.
        shape: Of one row.
        dtype: Name of its numpy dtype.
    """

    key: str
    feature: str
    start: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Elements of one row."""
        return int(np.prod(self.shape))


def need_pyarrow() -> tuple[Any, Any]:
    """`pyarrow` and `pyarrow.parquet`.

    Raises:
        PluginError: if they are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PluginError("LeRobot datasets need pyarrow; install it with: pip install 'robot_rl[lerobot]'") from error
    return pyarrow, pyarrow.parquet


def columns_of(episode: Episode, scene: Collection[str] = ()) -> list[Column]:
    """Where each observation of such an episode goes.

    Args:
        episode: The episode.
        scene: Keys of the float32 columns for `observation.environment_state`, without which some policies, e.g. ACT
            without cameras, cannot be.

    Raises:
        DataError: if the format cannot hold one, or there is no such column.
    """
    vectors = [key for key, column in episode.observations.items() if column.dtype == np.float32]
    if wrong := sorted(set(scene) - set(vectors)):
        raise DataError(f"there is no vector {', '.join(wrong)}; valid: {', '.join(sorted(vectors))}")
    columns, start = [], dict.fromkeys(_VECTORS, 0)
    for key in sorted(episode.observations):
        column = episode.observations[key]
        shape, dtype = column.shape[1:], column.dtype.name
        _, _, what = key.partition("/")
        if key.startswith(IMAGE_PREFIX):
            if column.dtype != np.uint8 or len(shape) != 3 or shape[2] not in (1, 3):
                raise DataError(f"{key}: {dtype} {shape} is no picture; expected uint8 (height, width, 1 or 3)")
            columns.append(Column(key, IMAGES + _dotted(what), 0, shape, dtype))
        elif column.dtype == np.float32:
            feature = ENVIRONMENT_STATE if key in scene else STATE
            columns.append(Column(key, feature, start[feature], shape, dtype))
            start[feature] += columns[-1].size
        else:
            columns.append(Column(key, f"observation.{_dotted(what)}", 0, shape, dtype))
    others = [column for column in columns if column.key not in vectors]
    if empty := [column.key for column in others if column.size == 0]:
        raise DataError(f"{', '.join(empty)}: a LeRobotDataset holds no columns without elements")
    names = [column.feature for column in others]
    if len(set(names)) != len(names) or set(_VECTORS) & set(names):
        raise DataError(f"two observations have the same name in a LeRobotDataset: {sorted(names)}")
    return columns


def step_features(episode: Episode) -> dict[str, np.ndarray]:
    """Return the columns with one row per step that are no observations, by feature."""
    return {
        "action": episode.action,
        "next.reward": episode.reward,
        "next.done": episode.terminated | episode.truncated,
        "next.terminated": episode.terminated,
        "next.truncated": episode.truncated,
        "complementary_info.action_policy": episode.action_policy,
        "complementary_info.source": episode.source.astype(np.int64),
        "complementary_info.stamp_obs": episode.stamp_obs[:-1],
        "complementary_info.stamp_action": episode.stamp_action,
    }


def element_names(columns: list[Column]) -> dict[str, list[str]]:
    """Return the names of the elements of each feature that is a vector."""
    names: dict[str, list[str]] = {}
    for column in columns:
        if not column.feature.startswith(IMAGES):
            names.setdefault(column.feature, []).extend(f"{column.key}.{i}" for i in range(column.size))
    return names


def stack_state(columns: list[Column], rows: Mapping[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    """Return the first `length` rows of the state columns as features of shape (length, size)."""
    parts: dict[str, list[np.ndarray]] = {}
    for column in columns:
        if not column.feature.startswith(IMAGES):
            parts.setdefault(column.feature, []).append(rows[column.key][:length].reshape(length, -1))
    return {feature: np.concatenate(part, axis=1) for feature, part in parts.items()}


def _dotted(what: str) -> str:
    return what.replace("/", ".")
