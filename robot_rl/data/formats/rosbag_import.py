"""Reads ROS 2 bags (MCAP) into episodes: the newest message of each topic at every tick of a fixed rate."""

from __future__ import annotations

import bisect
import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from robot_rl.data.formats.rosbag_mapping import BagMapping, TopicFields
from robot_rl.data.schema import IMAGE_PREFIX, Episode, Source
from robot_rl.data.sparse_reward import sparse_reward
from robot_rl.errors import DataError, PluginError
from robot_rl.system.regular_file import open_regular

_CHANNELS = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}
_DAMAGE = (OSError, EOFError, struct.error, LookupError, TypeError, ValueError, RuntimeError, OverflowError)
LONGEST = 1_000_000
"""Steps of the longest episode that is believed; more than a day at 10 Hz."""
_MAGIC = b"\x89MCAP0\r\n"
_FOOTER = struct.Struct("<9xQQI")
_CURE = "`mcap recover` mends one whose recording was cut short"


@dataclass
class Track:
    """The values of one entry of the mapping over time.

    Attributes:
        stamps: When [ns], increasing.
        values: What.
    """

    stamps: list[int] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)

    def before(self, stamp: int) -> int:
        """Index of the newest value that is not later than `stamp`; -1 if there is none."""
        return bisect.bisect_right(self.stamps, stamp) - 1

    def sort(self) -> None:
        """Bring the values into their order in time; those of one stamp stay in theirs."""
        order = sorted(range(len(self.stamps)), key=self.stamps.__getitem__)
        self.stamps, self.values = [self.stamps[i] for i in order], [self.values[i] for i in order]


def bag_files(path: Path) -> list[Path]:
    """Return the MCAP files of a bag: itself, or those of a rosbag2 directory.

    Raises:
        DataError: if there are none.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.mcap"))
    if not files:
        hint = "; it is in the SQLite format, `ros2 bag convert` makes MCAP of it" if list(path.glob("*.db3")) else ""
        raise DataError(f"{path}: no bag (*.mcap) there{hint}")
    return files


def read_bag(path: Path, mapping: BagMapping) -> Iterator[Episode]:
    """Return the episodes of a bag.

    Raises:
        DataError: naming the topic, and the field, that is missing, too old or of another kind; or if it holds no
            episode.
        PluginError: if the packages that read bags are not installed.
    """
    tracks = {name: Track() for name in mapping.topics}
    present: set[str] = set()
    for file in bag_files(path):
        present |= _fill(file, mapping, tracks)
    if missing := sorted({entry.topic for entry in mapping.topics.values()} - present):
        raise DataError(f"{path}: no topic {', '.join(missing)}; it has {', '.join(sorted(present))}")
    for track in tracks.values():
        track.sort()  # of several files, `bag_10` comes before `bag_2` by name
    for name, entry in mapping.topics.items():
        if not tracks[name].stamps:
            raise DataError(f"{path}: topic {entry.topic} ({name}) has no messages")
    number = 0
    for start, end in _intervals(mapping, tracks):
        episode = _episode(f"{path.stem}-{number:04d}", mapping, tracks, start, end, path)
        if episode is not None:
            yield episode
            number += 1
    if number == 0:
        while_true = f" while topic {mapping.episode.topic} is true" if mapping.episode is not None else ""
        raise DataError(
            f"{path}: holds no episode: there is no step of {1 / mapping.rate:g} s with all topics{while_true}"
        )


def _fill(file: Path, mapping: BagMapping, tracks: Mapping[str, Track]) -> set[str]:
    """Add the messages of a file; return its topics: of a bag in several files, not each has every topic."""
    try:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader
        from mcap_ros2.decoder import DecoderFactory
        from zstandard import ZstdError
    except ImportError as error:
        raise PluginError("bags need mcap and mcap-ros2-support: pip install 'robot_rl[mcap]'") from error
    by_topic: dict[str, list[str]] = {}
    for name, entry in mapping.topics.items():
        by_topic.setdefault(entry.topic, []).append(name)
    try:
        with open_regular(file.resolve()) as stream:
            _check_summary(stream)
            reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
            summary = reader.get_summary()
            present = {channel.topic for channel in summary.channels.values()} if summary else set()
            for _, channel, message, content in reader.iter_decoded_messages(topics=list(by_topic)):
                for name in by_topic[channel.topic]:
                    value = (
                        _picture(content) if name.startswith(IMAGE_PREFIX) else _vector(content, mapping.topics[name])
                    )
                    if isinstance(value, str):
                        raise DataError(f"{file}: topic {channel.topic} ({name}): {value}")
                    tracks[name].stamps.append(message.log_time)
                    tracks[name].values.append(value)
            return present
    except (McapError, ZstdError, *_DAMAGE) as error:
        raise DataError(f"{file}: cannot be read as a bag: {type(error).__name__}: {error}; {_CURE}") from error


def _check_summary(stream: IO[bytes]) -> None:
    """Compare the summary section with the checksum in the footer, which the reader does not.

    MCAP specification, "Footer": the checksum is the last field of the footer and covers the section up to it.

    Raises:
        ValueError: if they differ.
    """
    end = stream.seek(0, io.SEEK_END) - len(_MAGIC)
    if end >= _FOOTER.size:
        stream.seek(end - _FOOTER.size)
        start, _, expected = _FOOTER.unpack(stream.read(_FOOTER.size))
        if expected and start < end:
            stream.seek(start)
            if zlib.crc32(stream.read(end - 4 - start)) != expected:
                raise ValueError("its summary is damaged")
    stream.seek(0)


def _vector(content: Any, entry: TopicFields) -> np.ndarray | str:
    """Return the numbers of a message, float32; or a problem."""
    numbers: list[float] = []
    for path in entry.fields:
        value = content
        for part in path.split("."):
            if not hasattr(value, part):
                return f"no field {path!r}; {type(value).__name__} has {', '.join(_slots(value)) or 'no fields'}"
            value = getattr(value, part)
        found = list(_numbers(value))
        if None in found:
            return f"field {path!r} is not made of numbers"
        numbers += [number for number in found if number is not None]
    scale = np.asarray(entry.scale, np.float64)
    if scale.ndim and len(scale) != len(numbers):
        return f"`scale` has {len(scale)} numbers, the fields {len(numbers)}"
    values = (np.asarray(numbers, np.float64) / scale).astype(np.float32)
    return values if np.isfinite(values).all() else f"fields {', '.join(entry.fields)} have a NaN or an infinity"


def _numbers(value: Any) -> Iterator[float | None]:
    """All numbers in a value in order; None for what is no number."""
    if isinstance(value, bool | int | float):
        yield float(value)
    elif isinstance(value, list | tuple | bytes | bytearray | memoryview):
        for item in value:
            yield from _numbers(item)
    elif names := _slots(value):
        for name in names:
            yield from _numbers(getattr(value, name))
    else:
        yield None


def _slots(value: Any) -> list[str]:
    return [name for name in getattr(type(value), "__slots__", ()) if not name.startswith("_")]


def _picture(content: Any) -> np.ndarray | str:
    """Return a sensor_msgs/Image or CompressedImage as uint8 (height, width, 3); or a problem."""
    if hasattr(content, "encoding"):
        if content.encoding not in _CHANNELS:
            return f"pictures in {content.encoding!r}; valid: {', '.join(_CHANNELS)}"
        channels, height, width = _CHANNELS[content.encoding], content.height, content.width
        data = np.frombuffer(bytes(content.data), np.uint8)
        if content.step < width * channels or len(data) != height * content.step:
            return f"a picture of {len(data)} bytes, expected {height} rows of {content.step}"
        pixels = data.reshape(height, content.step)[:, : width * channels].reshape(height, width, channels)
        if content.encoding.startswith("bgr"):
            pixels = pixels[..., [2, 1, 0]]
        return np.ascontiguousarray(np.repeat(pixels, 3, 2) if channels == 1 else pixels[..., :3])
    if hasattr(content, "format"):
        try:
            return np.asarray(Image.open(io.BytesIO(bytes(content.data))).convert("RGB"))
        except (UnidentifiedImageError, OSError) as error:
            return f"a compressed picture cannot be read: {error}"
    return f"{type(content).__name__} is no picture; expected sensor_msgs/Image or CompressedImage"


def _intervals(mapping: BagMapping, tracks: Mapping[str, Track]) -> Iterator[tuple[int, int]]:
    """When episodes start and end [ns]: while `episode` is true, or from when all is known to the last message."""
    needed = [tracks[name] for name in (*mapping.observations, "action")]
    known = max(track.stamps[0] for track in needed)
    last = max(track.stamps[-1] for track in needed)
    if mapping.episode is None:
        yield known, last
        return
    started: int | None = None
    for stamp, value in zip(tracks["episode"].stamps, tracks["episode"].values, strict=True):
        runs = bool(value.any())
        if runs and started is None:
            started = stamp
        elif not runs and started is not None:
            yield max(started, known), stamp
            started = None
    if started is not None:
        yield max(started, known), last


def _episode(
    name: str, mapping: BagMapping, tracks: Mapping[str, Track], start: int, end: int, path: Path
) -> Episode | None:
    """Return the episode in an interval; None if it is shorter than one step."""
    success = None
    if mapping.success is not None:
        track = tracks["success"]
        pairs = zip(track.stamps, track.values, strict=True)
        shown = [stamp for stamp, value in pairs if start <= stamp <= end and value.any()]
        success = bool(shown)
        end = min([end, *shown])
    period = 1e9 / mapping.rate
    steps = int(np.ceil((end - start) / period - 1e-9)) if success else int((end - start) / period + 1e-9)
    if steps < 1:
        return None
    _check_length(name, steps, mapping, tracks, path)
    ticks = [start + round(t * period) for t in range(steps + 1)]
    observations = {key: _sampled(key, mapping, tracks[key], ticks, path) for key in mapping.observations}
    commands, stamps = tracks["action"], []
    chosen = [commands.before(tick - 1) for tick in ticks[1:]]
    if chosen[0] < 0:
        raise DataError(f"{path}: topic {mapping.action.topic} (action) has no message in the first step of {name}")
    action = _stacked("action", mapping.action, [commands.values[index] for index in chosen], path)
    if (size := np.abs(action).max()) > 1.0:
        raise DataError(
            f"{path}: topic {mapping.action.topic} (action), fields {', '.join(mapping.action.fields)}: up to "
            f"{size:.6g} after scaling, must lie in [-1, 1]; enlarge `scale`"
        )
    stamps = [max(commands.stamps[index], tick) for index, tick in zip(chosen, ticks[:-1], strict=True)]
    last = np.arange(steps) == steps - 1
    return Episode(
        episode_id=name,
        observations=observations,
        action=action,
        action_policy=action,
        source=np.full(steps, Source[mapping.source.upper()], np.int8),
        reward=sparse_reward(steps, bool(success)),
        terminated=last & bool(success),
        truncated=last & (not success),
        stamp_obs=np.array(ticks, np.int64),
        stamp_action=np.array(stamps, np.int64),
        reward_source="none" if success is None else "bag",
        metadata={"success": success, "bag": path.name},
    )


def _check_length(name: str, steps: int, mapping: BagMapping, tracks: Mapping[str, Track], path: Path) -> None:
    """Refuse an episode that needs more steps than its messages last, before room is made for them.

    Raises:
        DataError: if it does.
    """
    for key, entry in mapping.observations.items():
        messages = len(tracks[key].stamps)
        most = min((messages + 1) * (mapping.max_age * mapping.rate + 1), LONGEST)
        if steps > most:
            raise DataError(
                f"{path}: {name} would have {steps} steps; the {messages} messages of topic {entry.topic} ({key}) last "
                f"for {most:.0f} at most (`max_age` is {mapping.max_age:g} s); check `rate` and the time stamps"
            )


def _sampled(key: str, mapping: BagMapping, track: Track, ticks: list[int], path: Path) -> np.ndarray:
    rows, entry = [], mapping.observations[key]
    for tick in ticks:
        index = track.before(tick)
        age = (tick - track.stamps[index]) / 1e9 if index >= 0 else float("inf")
        if age > mapping.max_age:
            raise DataError(
                f"{path}: topic {entry.topic} ({key}): its newest message is {age:.3f} s old at {tick} ns; `max_age` "
                f"is {mapping.max_age:g} s"
            )
        rows.append(track.values[index])
    return _stacked(key, entry, rows, path)


def _stacked(key: str, entry: TopicFields, rows: list[np.ndarray], path: Path) -> np.ndarray:
    if len(shapes := {row.shape for row in rows}) > 1:
        fields = f", fields {', '.join(entry.fields)}" if entry.fields else ""
        raise DataError(f"{path}: topic {entry.topic} ({key}){fields}: the shape changes: {sorted(shapes)}")
    return np.stack(rows)
