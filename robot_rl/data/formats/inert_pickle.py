"""Reads pickles of plain values and arrays without running anything that they name.

A pickle is a program: loading one calls whatever it names. Here it reaches stand-ins only. An array, its type and a
scalar of NumPy become `PickledArray`, `PickledType` and their values; every other name becomes an `OpaqueObject`, which
remembers its name and does nothing. So a file may hold objects of packages that are not installed, as long as nobody
needs them.
"""

from __future__ import annotations

import collections
import mmap
import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np

from robot_rl.errors import DataError
from robot_rl.system.printable import one_line
from robot_rl.system.regular_file import open_regular

_PLAIN = re.compile(r"[|<>=]?(b1|[iu][1248]|f[248]|S\d{1,4}|U\d{1,4})")
"""Types of arrays that are read: booleans, integers, reals, short texts."""
_DAMAGED = (
    pickle.UnpicklingError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ImportError,
    ArithmeticError,
    MemoryError,  # of a length that is not true
    RecursionError,
)

_KEEPING = {"PUT", "BINPUT", "LONG_BINPUT"}
"""Operations that keep an object under a number."""


class OpaqueObject:
    """Something that a pickle names and this program does not make.

    Attributes:
        name: Of the class or function, e.g. `jax._src.array._reconstruct_array`.
    """

    name = "?"

    def __new__(cls, *_: Any, **__: Any) -> OpaqueObject:
        """Make one, whatever the arguments."""
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        """Forget the state."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forget an entry."""

    def append(self, value: Any) -> None:
        """Forget an element."""

    def extend(self, values: Any) -> None:
        """Forget elements."""

    def add(self, value: Any) -> None:
        """Forget an element."""


class PickledType:
    """A type of NumPy's in a pickle.

    Args:
        code: As NumPy writes it, e.g. `f4`.

    Raises:
        ValueError: if it is not plain.
    """

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not _PLAIN.fullmatch(code):
            raise ValueError(f"an array of the type {code!r:.40}; numbers, booleans and short texts are read")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        """Take over the order of bytes, the second entry of NumPy's state."""
        order = state[1]
        if order in ("<", ">", "="):
            self.dtype = self.dtype.newbyteorder(order)


class PickledArray:
    """An array in a pickle, whose content comes after it."""

    def __init__(self, *_: Any) -> None:
        self.value = np.zeros(0)

    def __setstate__(self, state: Any) -> None:
        """Take over the content: version, shape, type, whether columns come first, and the bytes."""
        _, shape, kind, columns_first, content = state
        self.value = _array(content, kind, shape, "F" if columns_first else "C")


def load_inert(path: Path) -> Any:
    """Return what a pickle holds: plain values, arrays, and `OpaqueObject` for the rest.

    Raises:
        DataError: if it is not a pickle, is damaged, or its sizes are not true.
    """
    try:
        with open_regular(path) as file:
            _check_memo(file)
            return _plain(_InertUnpickler(file).load())
    except _DAMAGED as error:
        raise DataError(
            f"{path}: cannot be read as a pickle: {type(error).__name__}: {one_line(str(error))}"
        ) from error


def _check_memo(file: BinaryIO) -> None:
    """Check the numbers under which a pickle keeps objects; Python makes room for as many as the largest one says.

    Raises:
        pickle.UnpicklingError: if one is larger than the number of operations before it, as none is that was written.
        ValueError: if it is no sequence of operations.
    """
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for count, (operation, number, place) in enumerate(pickletools.genops(cast("IO[bytes]", content))):
            if operation.name in _KEEPING and not 0 <= int(number or 0) <= count:
                raise pickle.UnpicklingError(
                    f"byte {place} keeps an object as number {number}, after {count} operations"
                )


class _InertUnpickler(pickle.Unpickler):
    """Reaches stand-ins only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name."""
        return _STAND_INS.get((module.removeprefix("numpy._core.").removeprefix("numpy.core."), name)) or type(
            "OpaqueObject", (OpaqueObject,), {"name": f"{module}.{name}"}
        )

    def persistent_load(self, pid: Any) -> Any:
        """Refuse objects outside the file."""
        raise pickle.UnpicklingError(f"refers to an object {pid!r:.40} outside the file")


def _array(content: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    """Return an array of the bytes of a pickle; sizes are compared before anything is made."""
    if not isinstance(kind, PickledType) or not isinstance(content, bytes | bytearray):
        raise ValueError("an array of objects; numbers, booleans and short texts are read")
    values = np.frombuffer(content, kind.dtype)
    if int(np.prod([int(size) for size in shape], dtype=object)) != values.size:
        raise ValueError(f"an array of shape {shape} with {values.size} values")
    return values.reshape(shape, order="F" if order == "F" else "C")


def _scalar(kind: Any, content: Any = b"") -> Any:
    return _array(content, kind, (), "C")[()]


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes that protocol 2 and older write as a text."""
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding!r:.20}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("multiarray", "_reconstruct"): lambda *_: PickledArray(),
    ("multiarray", "scalar"): _scalar,
    ("numeric", "_frombuffer"): _array,
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): PickledType,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("_codecs", "encode"): _encode,
}


def _plain(value: Any) -> Any:
    """Replace stand-ins of arrays by arrays, in place; each container is visited once, however often it is shared."""
    holder = [value]
    seen: set[int] = set()
    waiting: list[Any] = [holder]
    while waiting:
        container = waiting.pop()
        if id(container) in seen:
            continue
        seen.add(id(container))
        places = container.items() if isinstance(container, dict) else enumerate(container)
        for place, entry in list(places):
            if isinstance(entry, PickledArray):
                container[place] = entry.value
            elif isinstance(entry, dict | list):
                waiting.append(entry)
    return holder[0]
