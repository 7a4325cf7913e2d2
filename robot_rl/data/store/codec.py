"""Between an `Episode` and the bytes of one zip file that holds a zarr (version 3) group; `store.py` puts it on disk.

One file, because an episode then appears and reaches the disk at once. zip keeps a CRC-32 of every member, and its
directory last, so that damage and a file cut short are noticed. To look into one: `zarr.open(ZipStore(path)).tree()`.

Columns of one dtype and length share an array, a *table* of shape (rows, width), because each zarr array costs about a
millisecond. The group's attribute `columns` holds the table and the elements of each column. Images have an array each,
in chunks of ten frames.

    steps_float32         action, action_policy, reward
    steps_int8            source, terminated, truncated, arm_sources, where there were several arms
    steps_int64           stamp_action
    observations_int64    stamp_obs
    observations_float32  action_base, where there was a base policy
    observations_<dtype>  state/...
    images/<camera>       (T + 1, height, width, channels)

Zip files as containers: members are stored as they are, and whatever is wrong with one is a `DataError`.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import zarr
from zarr.abc.buffer import Buffer
from zarr.buffer.cpu import Buffer as CpuBuffer
from zarr.codecs import BloscCodec
from zarr.storage import MemoryStore

from robot_rl.data.schema import ARMS_COLUMN, BASE_COLUMN, IMAGE_PREFIX, STATE_PREFIX, STEP_COLUMNS, Episode, in_control
from robot_rl.data.store.array_layout import GROUP_FILE, check_facts, check_layout
from robot_rl.errors import DataError
from robot_rl.system.checked_json import parse_json

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, ..., lengths of the name and of the extra field
_SIGNATURE = b"PK\3\4"
_DAMAGE = (
    OverflowError,
    zipfile.BadZipFile,
    struct.error,
    OSError,
    EOFError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
)


@contextmanager
def opened(file: IO[bytes], what: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive to read; errors of its content become errors of ours.

    Args:
        file: The archive.
        what: What it should be, e.g. `"an episode"`.

    Raises:
        DataError: if it is damaged, or not that.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:  # ours are not, so this is damage; decompressors choke
                    raise zipfile.BadZipFile(f"{member.filename} is compressed")
            yield archive
    except _DAMAGE as error:
        raise DataError(f"damaged, or not {what}: {type(error).__name__}: {error}") from error


def members(content: bytes, archive: zipfile.ZipFile) -> dict[str, memoryview]:
    """All members of the archive that `content` is, checked as `ZipFile.read` would, but without copying them.

    Raises:
        zipfile.BadZipFile: if one is damaged; `opened` makes that an error of ours.
    """
    view, found = memoryview(content), dict[str, memoryview]()
    for member in archive.infolist():
        start = member.header_offset + _LOCAL_HEADER.size
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(view[member.header_offset : start])
        name = bytes(view[start : start + name_length])
        start += name_length + extra_length
        data = view[start : start + member.file_size]
        if signature != _SIGNATURE or name != member.orig_filename.encode() or member.flag_bits & 1:
            raise zipfile.BadZipFile(f"the header of {member.filename} differs from the directory")
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC or member.filename in found:
            raise zipfile.BadZipFile(f"{member.filename} is damaged")
        found[member.filename] = data
    return found


_FRAMES_PER_CHUNK = 10
_FACTS = ("schema_version", "episode_id", "length", "reward_source", "metadata")
_CODEC = BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle")


def encode(episode: Episode) -> bytes:
    """Return the file of an episode.

    Raises:
        DataError: if the metadata are not JSON values, or an observation is neither `state/...` nor `images/...`.
    """
    attributes: dict[str, Any] = {
        "schema_version": episode.schema_version,
        "episode_id": episode.episode_id,
        "length": len(episode),
        "reward_source": episode.reward_source,
        "metadata": dict(episode.metadata),
    }
    try:
        json.dumps(attributes, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"episode {episode.episode_id}: metadata must be JSON values: {error}") from error
    if unknown := sorted(key for key in episode.observations if not key.startswith((STATE_PREFIX, IMAGE_PREFIX))):
        raise DataError(f"episode {episode.episode_id}: observations {unknown} are neither state/... nor images/...")
    tables: dict[str, list[np.ndarray]] = {}
    columns: dict[str, dict[str, Any]] = {}
    images: dict[str, np.ndarray] = {}
    named = [("steps", name, getattr(episode, name)) for name in STEP_COLUMNS]
    if episode.arm_sources is not None:
        named.append(("steps", ARMS_COLUMN, episode.arm_sources))
    named.append(("observations", "stamp_obs", episode.stamp_obs))
    if episode.action_base is not None:
        named.append(("observations", BASE_COLUMN, episode.action_base))
    named += [("observations", key, episode.observations[key]) for key in sorted(episode.observations)]
    for rows, name, value in named:
        array = np.asarray(value)
        if name.startswith(IMAGE_PREFIX):
            images[name] = array
            continue
        stored = "int8" if array.dtype == np.bool_ else array.dtype.name
        parts = tables.setdefault(f"{rows}_{stored}", [])
        columns[name] = {
            "table": f"{rows}_{stored}",
            "start": sum(part.shape[1] for part in parts),
            "shape": list(array.shape[1:]),
            "dtype": array.dtype.name,
        }
        parts.append(array.reshape(len(array), -1).astype(stored, copy=False))
    files: dict[str, Buffer] = {}
    layout = {"columns": columns, "images": list(images)}
    group = zarr.create_group(MemoryStore(files), attributes={**attributes, **layout})
    for name, parts in tables.items():
        table = np.concatenate(parts, axis=1)
        _write(group, name, table, chunks=table.shape)
    for name, frames in images.items():
        _write(group, name, frames, chunks=(min(_FRAMES_PER_CHUNK, len(frames)), *frames.shape[1:]))
    return archived((path, buffer.to_bytes()) for path, buffer in files.items())


def archived(files: Iterable[tuple[str, bytes | memoryview]]) -> bytes:
    """Return a zip archive of files by name, without the time of writing: of the same content, the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for path, data in files:
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o600 << 16  # readable where it is unpacked by hand
            archive.writestr(entry, data)
    return content.getvalue()


def read_attributes(file: IO[bytes]) -> dict[str, Any]:
    """`schema_version`, `episode_id`, `length`, `reward_source` and `metadata`, without reading any array.

    Raises:
        DataError: if the file is damaged or is not an episode.
    """
    with opened(file, "an episode") as archive:
        attributes: dict[str, Any] = parse_json(archive.read(GROUP_FILE))["attributes"]
        check_facts(attributes)
        return {name: attributes[name] for name in _FACTS}


def decode(content: bytes) -> Episode:
    """Return the episode that `encode` made these bytes of; every byte is checked.

    Raises:
        DataError: if the file is damaged or is not an episode.
    """
    with opened(io.BytesIO(content), "an episode") as archive:
        files = members(content, archive)
        attributes = check_layout(files)
        buffers: dict[str, Buffer] = {name: CpuBuffer.from_bytes(data) for name, data in files.items()}
        return _decode(MemoryStore(buffers, read_only=True), attributes)


def decode_sources(content: bytes) -> np.ndarray:
    """Return `Episode.control` of the episode that `encode` made these bytes of; its frames are not decompressed.

    Raises:
        DataError: if the file is damaged or is not an episode.
    """
    with opened(io.BytesIO(content), "an episode") as archive:
        files = members(content, archive)
        columns = check_layout(files)["columns"]
        buffers: dict[str, Buffer] = {name: CpuBuffer.from_bytes(data) for name, data in files.items()}
        group = zarr.open_group(MemoryStore(buffers, read_only=True), mode="r", zarr_format=3)
        names = [name for name in ("source", ARMS_COLUMN) if name in columns]
        values = {name: _part(_read(group, columns[name]["table"]), columns[name]) for name in names}
        return in_control(values["source"], values.get(ARMS_COLUMN))


def _part(table: np.ndarray, column: dict[str, Any]) -> np.ndarray:
    """Return the column of a table."""
    width = int(np.prod(column["shape"]))
    part = table[:, column["start"] : column["start"] + width]
    return part.reshape(len(table), *column["shape"]).astype(column["dtype"])


def _decode(store: MemoryStore, attributes: dict[str, Any]) -> Episode:
    group = zarr.open_group(store, mode="r", zarr_format=3)
    columns: dict[str, dict[str, Any]] = attributes["columns"]
    tables = {name: _read(group, name) for name in {column["table"] for column in columns.values()}}
    values = {name: _part(tables[column["table"]], column) for name, column in columns.items()}
    values.update({name: _read(group, name) for name in attributes["images"]})
    fixed = {*STEP_COLUMNS, "stamp_obs"}
    proposals, arm_sources = values.pop(BASE_COLUMN, None), values.pop(ARMS_COLUMN, None)
    return Episode(
        episode_id=attributes["episode_id"],
        observations={key: values[key] for key in sorted(values) if key not in fixed},
        reward_source=attributes["reward_source"],
        metadata=attributes["metadata"],
        schema_version=attributes["schema_version"],
        action_base=proposals,
        arm_sources=arm_sources,
        **{name: values[name] for name in fixed},
    )


def _write(group: zarr.Group, name: str, array: np.ndarray, chunks: tuple[int, ...]) -> None:
    """Write one array. Chunks of zeros too, so that a missing chunk can only mean damage."""
    codec = _CODEC if array.size else None  # blosc refuses empty chunks
    group.create_array(
        name,
        data=array,
        chunks=tuple(max(1, size) for size in chunks),
        filters=None,
        compressors=codec,
        config={"write_empty_chunks": True},
    )


def _read(group: zarr.Group, name: str) -> np.ndarray:
    """Read one array whole."""
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise TypeError(f"{name} is not an array")
    return np.asarray(array[...])
