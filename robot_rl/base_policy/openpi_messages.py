"""Messages of an openpi policy server: msgpack with numpy arrays, as the package `openpi-client` writes them.

An array is the map {b"__ndarray__": True, b"data": bytes, b"dtype": str, b"shape": [...]}, a number of numpy
{b"__npgeneric__": True, b"data": value, b"dtype": str}. Only numbers are read, and only arrays of their own size.
"""

from __future__ import annotations

import math
from typing import Any

import msgpack
import numpy as np

_NUMBERS = "biuf"


def pack(value: Any) -> bytes:
    """Return a message of nested plain values, arrays and numbers of numpy."""
    packed: bytes = msgpack.packb(value, default=_plain)
    return packed


def unpack(message: bytes) -> Any:
    """Return the content of a message.

    Raises:
        ValueError: if it is none, or holds anything but numbers in its arrays.
    """
    try:
        return msgpack.unpackb(message, object_hook=_array, strict_map_key=False)
    except (msgpack.UnpackException, TypeError, KeyError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"no msgpack with numpy arrays: {type(error).__name__}: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        data = {b"__ndarray__": True, b"data": value.tobytes()}
        return {**data, b"dtype": value.dtype.str, b"shape": list(value.shape)}
    if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _array(value: dict[Any, Any]) -> Any:
    if b"__npgeneric__" in value:
        return value[b"data"]
    if b"__ndarray__" not in value:
        return value
    dtype, shape = np.dtype(value[b"dtype"]), [int(size) for size in value[b"shape"]]
    if dtype.kind not in _NUMBERS or min(shape, default=0) < 0:
        raise ValueError(f"an array of {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(value[b"data"]):
        raise ValueError(f"an array of shape {shape} in {len(value[b'data'])} bytes")
    return np.frombuffer(value[b"data"], dtype).reshape(shape)
