"""Checkpoints: nested plain data, arrays and tensors in one file that is whole, checked and free of pickle.

A file is `MAGIC`, the size of all that follows, the size of the index, the index, the bytes of the arrays one after
another, and the SHA-256 of everything before it. The index is msgpack and gives each array's dtype, shape and place.
The file is written beside the old one and then renamed over it; the old one stays as `<name>.previous`.

Why it is not `safetensors`: that stores a flat list of tensors, so we would still have to name the places in the nested
data and to store all other values as strings; and it has no checksum, so a flipped bit loads without an error. Measured
with 203 MB in 65 tensors (safetensors 0.8, 2 cores, median of 5): writing takes 0.65 s here, 0.19 s there, and 0.61 s
there with SHA-256; reading 0.35 s, 0.02 s, and 0.38 s. The checksum is the cost.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import torch

from robot_rl.errors import CheckpointError
from robot_rl.system.atomic_file import replace_file, writing
from robot_rl.system.model_files import TRAINING
from robot_rl.system.regular_file import read_regular

MAGIC = b"robot_rl checkpoint\n"
_SIZES = struct.Struct("<QQ")
_DIGEST_SIZE = hashlib.sha256().digest_size
_TENSOR, _ARRAY, _SCALAR, _TUPLE, _INTEGER = 1, 2, 3, 4, 5  # msgpack extension codes
_ARRAY_KINDS = "biufcSU"
_LAST = 0x10FFFF  # code of the last character that there is
MAX_DEPTH = 100
"""Levels of nesting of a payload that is read; those of a training are about ten."""
MAX_DIMENSIONS, MAX_SIZE = 32, 2**48
"""Of an array that is read."""


def previous_path(path: Path) -> Path:
    """Return the path at which the checkpoint before the one at `path` is kept."""
    return path.with_name(f"{path.name}.previous")


def save_checkpoint(
    path: Path, payload: Mapping[str, Any], *, kind: str = TRAINING.name, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a checkpoint; when this returns it is on the disk, and until then the old one is at `path`.

    Args:
        path: The file.
        payload: Nested dicts (keys str or int), lists and tuples of tensors, numpy arrays and scalars, int of any
            size, float, bool, str, bytes and None. Tensors come back on the CPU, without gradient.
        kind: Purpose of the checkpoint; `load_checkpoint` can insist on it.
        metadata: Small plain facts for people and for `describe_checkpoint`, e.g. the task.

    Raises:
        CheckpointError: if the payload holds anything else; the message names its place.
        RunDirectoryError: if the file cannot be written, e.g. because the disk is full. The old one is unharmed.
    """
    chunks = encode_checkpoint(payload, kind=kind, metadata=metadata)
    with writing(path):
        replace_file(path, chunks, previous=previous_path(path))


def encode_checkpoint(
    payload: Mapping[str, Any], *, kind: str = TRAINING.name, metadata: Mapping[str, Any] | None = None
) -> list[bytes | memoryview]:
    """Return the content of a checkpoint file, in pieces that share memory with the payload; see `save_checkpoint`."""
    blobs: list[memoryview] = []
    facts = _fold(dict(metadata or {}), [], "metadata")
    index = msgpack.packb(
        {"version": TRAINING.version, "kind": kind, "metadata": facts, "payload": _fold(payload, blobs, "payload")}
    )
    rest = len(index) + sum(blob.nbytes for blob in blobs) + _DIGEST_SIZE
    chunks: list[bytes | memoryview] = [MAGIC + _SIZES.pack(rest, len(index)), index, *blobs]
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return [*chunks, digest.digest()]


def load_checkpoint(path: Path, *, kind: str | None = None) -> dict[str, Any]:
    """Read and check a checkpoint.

    Args:
        path: The file.
        kind: The kind that it must be of, or None to accept any.

    Returns:
        The payload.

    Raises:
        CheckpointError: if it is missing, cut short, altered, or of another kind or version.
    """
    return read_checkpoint(path, kind=kind)[0]


def read_checkpoint(path: Path, *, kind: str | None = None) -> tuple[dict[str, Any], str]:
    """Return the payload of a checkpoint, and the SHA-256 at its end as hexadecimal digits; see `load_checkpoint`."""
    index, blobs, digest = _read(path)
    return _payload(index, blobs, kind=kind, name=str(path)), digest


def decode_checkpoint(content: bytes, *, kind: str | None = None, name: str = "checkpoint") -> dict[str, Any]:
    """Return the payload of an encoded checkpoint, called `name` in errors; raises as `load_checkpoint` does."""
    index, blobs, _ = _parse(memoryview(content), name, "")
    return _payload(index, blobs, kind=kind, name=name)


def describe_checkpoint(path: Path) -> dict[str, Any]:
    """Return `version`, `kind` and `metadata` of a checkpoint; raises as `load_checkpoint` does."""
    index, blobs, _ = _read(path)
    return {"version": index["version"], "kind": index["kind"], "metadata": _unfold(index["metadata"], blobs)}


def _read(path: Path) -> tuple[dict[str, Any], memoryview, str]:
    """Return the index, the bytes of the arrays and the digest of a checked file."""
    try:
        content = read_regular(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no checkpoint there{_cure(path)}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}{_cure(path)}") from error
    return _parse(memoryview(content), str(path), _cure(path))


def _parse(data: memoryview, name: str, cure: str) -> tuple[dict[str, Any], memoryview, str]:
    """Check the content; return the index, the bytes of the arrays and the digest."""
    start = len(MAGIC) + _SIZES.size
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise CheckpointError(f"{name}: not a checkpoint of robot_rl{cure}")
    if len(data) < start:
        raise CheckpointError(f"{name}: cut short after {len(data)} bytes{cure}")
    rest, index_size = _SIZES.unpack(data[len(MAGIC) : start])
    if len(data) < start + rest:
        raise CheckpointError(f"{name}: cut short: {len(data)} of {start + rest} bytes{cure}")
    if hashlib.sha256(data[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:] or len(data) != start + rest:
        raise CheckpointError(f"{name}: altered since it was written (checksum differs){cure}")
    blobs = data[start + index_size : -_DIGEST_SIZE]
    try:
        index = msgpack.unpackb(data[start : start + index_size], strict_map_key=False)
        version = index["version"]
        if version == TRAINING.version:
            _check(index["metadata"], len(blobs))
            used = _check(index["payload"], len(blobs))
            if not isinstance(index["kind"], str) or not isinstance(index["payload"], dict) or used > len(blobs):
                raise ValueError(f"its arrays need {used} bytes, it has {len(blobs)}")
    except (msgpack.UnpackException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{name}: its index is not true: {type(error).__name__}: {error}{cure}") from error
    if version != TRAINING.version:
        raise CheckpointError(
            f"{name}: version {version!r:.50}, this program reads {TRAINING.version}; use the robot_rl that wrote it"
        )
    return index, blobs, data[-_DIGEST_SIZE:].hex()


def _check(value: Any, room: int, depth: int = 0) -> int:
    """Return the bytes of the arrays in a value of the index, each of which is known to lie in the `room` bytes there.

    Raises:
        ValueError, TypeError, KeyError, AttributeError: if an entry is not one that `_fold` makes.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return sum(_check(item, room, depth + 1) for item in value.values())
    if isinstance(value, list):
        return sum(_check(item, room, depth + 1) for item in value)
    if not isinstance(value, msgpack.ExtType):
        return 0
    if value.code == _INTEGER:
        int(value.data)
        return 0
    if value.code == _TUPLE:
        items = msgpack.unpackb(value.data, strict_map_key=False)
        return sum(_check(item, room, depth + 1) for item in items)
    dtype, shape, start, size = msgpack.unpackb(value.data)
    if len(shape) > MAX_DIMENSIONS or any(type(n) is not int or not 0 <= n < MAX_SIZE for n in (*shape, start, size)):
        raise ValueError("the sizes of an array cannot be true")
    if start + size > room:
        raise ValueError(f"an array lies {start + size} bytes from the first one, and there are {room}")
    if math.prod(shape) * _itemsize(value.code, dtype) != size:
        raise ValueError(f"an array of shape {shape!r:.50} and type {dtype!r:.50} has not {size} bytes")
    return int(size)


def _itemsize(code: int, dtype: str) -> int:
    """Return the size of an element [bytes]."""
    if code == _TENSOR:
        kind = getattr(torch, dtype)
        if not isinstance(kind, torch.dtype):
            raise TypeError(f"{dtype!r:.50} is no type of tensors")
        return kind.itemsize
    if code not in (_ARRAY, _SCALAR) or np.dtype(dtype).kind not in _ARRAY_KINDS:
        raise TypeError(f"{dtype!r:.50} is no type of arrays")
    return np.dtype(dtype).itemsize


def _payload(index: dict[str, Any], blobs: memoryview, *, kind: str | None, name: str) -> dict[str, Any]:
    """Return the payload of a checked checkpoint, if it is of the wanted kind."""
    if kind is not None and index["kind"] != kind:
        raise CheckpointError(f"{name}: is a checkpoint of kind {index['kind']!r}, not {kind!r}; check the path")
    try:
        payload: dict[str, Any] = _unfold(index["payload"], blobs)
    except ValueError as error:
        raise CheckpointError(f"{name}: its index is not true: {error}") from error
    return payload


def _cure(path: Path) -> str:
    """Return the cure for a checkpoint that cannot be used."""
    previous = previous_path(path)
    if previous.exists():
        return f"; the one before it is kept: to go on from there, rename {previous} to {path}"
    return "; there is no earlier one: check the path, or start a new run"


def _fold(value: Any, blobs: list[memoryview], where: str) -> Any:
    """Convert `value` for msgpack; the bytes of arrays are appended to `blobs`."""
    if value is None or (isinstance(value, bool | float | str | bytes) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else msgpack.ExtType(_INTEGER, str(value).encode())
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().contiguous()
        name = str(tensor.dtype).removeprefix("torch.")
        return _blob(_TENSOR, name, tensor.reshape(-1).view(torch.uint8).numpy(), tuple(tensor.shape), blobs)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _ARRAY_KINDS:
        array = np.ascontiguousarray(value)
        code = _ARRAY if isinstance(value, np.ndarray) else _SCALAR
        return _blob(code, array.dtype.str, array.reshape(-1).view(np.uint8), value.shape, blobs)
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str | int)]:
            raise CheckpointError(f"{where} has the key {wrong[0]!r}; a checkpoint takes str and int keys")
        return {key: _fold(item, blobs, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_fold(item, blobs, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if isinstance(value, list) else msgpack.ExtType(_TUPLE, msgpack.packb(items))
    raise CheckpointError(f"{where} is a {type(value).__name__}; a checkpoint takes arrays, tensors and plain data")


def _blob(code: int, dtype: str, content: np.ndarray, shape: tuple[int, ...], blobs: list[memoryview]) -> Any:
    """Return the reference to an array whose bytes are appended to `blobs`."""
    start = sum(blob.nbytes for blob in blobs)
    blobs.append(content.data)
    return msgpack.ExtType(code, msgpack.packb([dtype, shape, start, content.nbytes]))


def _unfold(value: Any, blobs: memoryview) -> Any:
    """Invert `_fold`."""
    if isinstance(value, dict):
        return {key: _unfold(item, blobs) for key, item in value.items()}
    if isinstance(value, list):
        return [_unfold(item, blobs) for item in value]
    if not isinstance(value, msgpack.ExtType):
        return value
    if value.code == _INTEGER:
        return int(value.data)
    if value.code == _TUPLE:
        return tuple(_unfold(item, blobs) for item in msgpack.unpackb(value.data, strict_map_key=False))
    dtype, shape, start, size = msgpack.unpackb(value.data)
    content = np.frombuffer(blobs[start : start + size], np.uint8).copy()
    if value.code == _TENSOR:
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        if size:
            tensor.view(-1).view(torch.uint8).copy_(torch.from_numpy(content))
        return tensor
    array = content.view(dtype).reshape(shape)
    if array.dtype.kind == "U" and (content.view(np.dtype("u4").newbyteorder(array.dtype.byteorder)) > _LAST).any():
        raise ValueError("a text of characters that there are not")
    return array if value.code == _ARRAY else array[()]
