"""The arrays that an episode file may hold, checked on its metadata before a byte is decoded.

A file may come from anybody. Its metadata name a codec, a dtype and sizes. A foreign codec may run code, and sizes
that are not true take all memory. So only what `codec.encode` writes is read: format 3, one codec, numbers, every chunk
present, and each of the size that its array gives it. LZ4 expands by at most 255, so memory is bounded by the file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np

from robot_rl.data.schema import check_id
from robot_rl.system.checked_json import parse_json

GROUP_FILE = "zarr.json"
NUMBERS = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)
"""Types of columns and of arrays."""
MAX_DIMENSIONS = 8
_BLOSC = struct.Struct("<4B3I")  # version, version of the codec, flags, size of a value; bytes, of a block, compressed
_LZ4, _PLAIN = 1, 0x2  # codec in the upper three bits of the flags; a chunk that is stored as it is


def check_layout(files: Mapping[str, memoryview]) -> dict[str, Any]:
    """Return the attributes of an episode's group if its arrays are what `codec.encode` writes.

    Args:
        files: Contents of the members of the file, by name.

    Raises:
        KeyError, TypeError, ValueError: if the file is not an episode, or its sizes are not true.
    """
    nodes = {name: _json(name, data) for name, data in files.items() if name.rpartition("/")[2] == GROUP_FILE}
    attributes = nodes[GROUP_FILE]["attributes"]
    check_facts(attributes)
    expected = set(nodes)
    for name, node in nodes.items():
        if node.get("zarr_format") != 3 or node.get("node_type") not in ("array", "group"):
            raise ValueError(f"{name} is not metadata of zarr, format 3")
        if node["node_type"] == "array":
            path = name.removesuffix(f"/{GROUP_FILE}")
            rows = attributes["length"] + (not path.startswith("steps_"))
            expected |= _check_array(path, node, rows, files)
    if surplus := sorted(set(files) - expected):
        raise ValueError(f"member {surplus[0]!r} is not of an episode")
    _check_columns(attributes, nodes)
    return dict(attributes)


def check_facts(attributes: Mapping[str, Any]) -> None:
    """Check the types of an episode's facts.

    Raises:
        KeyError, TypeError, ValueError: if they are not those of an episode.
        EpisodeIdError: if files cannot be named by its id.
    """
    length, episode_id, metadata = attributes["length"], attributes["episode_id"], attributes["metadata"]
    if type(length) is not int or length < 0:
        raise ValueError(f"length must be a number of steps, not {length!r:.50}")
    check_id(episode_id)
    if not isinstance(metadata, dict):
        raise TypeError(f"metadata must be a mapping, not {metadata!r:.50}")


def _check_array(path: str, node: Mapping[str, Any], rows: int, files: Mapping[str, memoryview]) -> set[str]:
    """Check one array; return the names of its chunks."""
    shape = _sizes(f"shape of {path}", node["shape"], 0)
    chunk = _sizes(f"chunks of {path}", node["chunk_grid"]["configuration"]["chunk_shape"], 1)
    if len(shape) != len(chunk) or shape[:1] != [rows] or any(c > max(1, n) for c, n in zip(chunk, shape, strict=True)):
        raise ValueError(f"{path} has shape {shape} in chunks of {chunk}; an episode of this length has {rows} rows")
    if node["data_type"] not in NUMBERS:
        raise ValueError(f"{path} holds {node['data_type']!r:.50}; valid: {', '.join(NUMBERS)}")
    if (
        node["chunk_grid"]["name"] != "regular"
        or node["chunk_key_encoding"] != _KEYS
        or node.get("storage_transformers")
    ):
        raise ValueError(f"{path} is stored in a way that episodes are not")
    size = prod(chunk) * np.dtype(node["data_type"]).itemsize
    compressed = _is_compressed(path, node["codecs"])
    present = {name for name in files if name.startswith(f"{path}/c/")}
    if len(present) != prod(ceil(n / c) for n, c in zip(shape, chunk, strict=True)):
        raise ValueError(f"{path} has {len(present)} chunks, which is not what its shape {shape} needs")
    names = ("/".join([path, "c", *map(str, index)]) for index in product(*map(_count, shape, chunk)))
    for name in names:
        if _decoded_size(files[name], compressed=compressed) != size:
            raise ValueError(f"{name} is not of the {size} bytes of its chunk")
    return present


_KEYS = {"name": "default", "configuration": {"separator": "/"}}


def _count(size: int, chunk: int) -> range:
    return range(ceil(size / chunk))


def _is_compressed(path: str, codecs: Any) -> bool:
    """Return whether the codecs are those of a compressed array, or of one that is not."""
    first, *rest = codecs
    endian = first.get("configuration", {}).get("endian", "little")
    known = first["name"] == "bytes" and endian == "little" and len(rest) <= 1
    if not known or any(one["name"] != "blosc" or one["configuration"]["cname"] != "lz4" for one in rest):
        raise ValueError(
            f"{path} is written with codecs {json.dumps(codecs):.100}; episodes use bytes and blosc with lz4"
        )
    return bool(rest)


def _decoded_size(chunk: memoryview, *, compressed: bool) -> int:
    """Return the size of a decoded chunk [bytes], from its head."""
    if not compressed:
        return len(chunk)
    _, _, flags, _, size, _, stored = _BLOSC.unpack(chunk[: _BLOSC.size])
    if stored != len(chunk) or not (flags >> 5 == _LZ4 or flags & _PLAIN):
        raise ValueError("the head of a chunk is not that of LZ4")
    return int(size)


def _check_columns(attributes: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> None:
    for name, column in attributes["columns"].items():
        width = nodes[f"{column['table']}/{GROUP_FILE}"]["shape"][1]
        start, shape = column["start"], _sizes(f"shape of {name}", column["shape"], 0)
        if column["dtype"] not in NUMBERS or type(start) is not int or not 0 <= start <= start + prod(shape) <= width:
            raise ValueError(f"column {name} is not in its table")
    for name in attributes["images"]:
        if nodes[f"{name}/{GROUP_FILE}"]["node_type"] != "array":
            raise TypeError(f"{name} is not an array")


def _sizes(what: str, values: Any, least: int) -> list[int]:
    if (
        not isinstance(values, list)
        or len(values) > MAX_DIMENSIONS
        or any(type(n) is not int or n < least for n in values)
    ):
        raise ValueError(f"{what} is {values!r:.50}, not a list of sizes")
    return list(values)


def _json(name: str, data: memoryview) -> dict[str, Any]:
    node = parse_json(bytes(data))
    if not isinstance(node, dict):
        raise TypeError(f"{name} is not metadata of zarr")
    return node
