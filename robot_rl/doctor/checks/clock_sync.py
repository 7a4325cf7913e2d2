"""Is the clock of this machine synchronised? Stamps of other machines are compared with it."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterator

from robot_rl.doctor.contract.machine import Machine
from robot_rl.doctor.contract.result import CheckResult

WANTED_ERROR = 0.1
"""Largest error that the kernel assumes [s]."""
_UNSYNCHRONISED = 0x40
"""Flag STA_UNSYNC of `adjtimex`."""


def check_clock_sync(
    machine: Machine, read: Callable[[], tuple[int, float] | None] | None = None
) -> Iterator[CheckResult]:
    """Look at the state of the kernel's clock.

    Args:
        machine: What is examined.
        read: Returns the flags of the clock and its largest error [s], None where they are unknown; None reads them.
    """
    del machine
    state = (read or kernel_clock)()
    if state is None:
        yield CheckResult("clock", "note", "whether the clock is synchronised is not reported here")
        return
    flags, error = state
    if flags & _UNSYNCHRONISED:
        yield CheckResult(
            "clock",
            "note",
            "the clock is not synchronised: fine on one machine; between two machines, commands look old and the arm "
            "holds",
            cure="sudo timedatectl set-ntp true (or sudo apt install chrony)",
        )
        return
    good = error <= WANTED_ERROR
    yield CheckResult(
        "clock",
        "ok" if good else "note",
        f"the clock is synchronised to within {1e3 * error:.0f} ms",
        round(error, 6),
        "s",
        f"at most {WANTED_ERROR:g} s",
        "" if good else "chronyc tracking; a server in the same building is better",
    )


class _Timex(ctypes.Structure):
    """The beginning of `struct timex`; the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("room", ctypes.c_char * 256),
    )


def kernel_clock() -> tuple[int, float] | None:
    """Return the flags of the kernel's clock and its largest error [s]; None where they are unknown."""
    timex = _Timex()  # modes = 0: nothing is set
    adjust = getattr(ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True), "adjtimex", None)
    if adjust is None or adjust(ctypes.byref(timex)) < 0:
        return None
    return timex.status, timex.maxerror * 1e-6
