"""The machine that is examined: its file systems, its environment, and what it is wanted for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


def _readable_and_writable(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


@dataclass(frozen=True)
class Machine:
    """What checks read. Tests give folders of their own for `/sys`, `/proc`, `/dev` and `/etc`.

    Attributes:
        sys: What the kernel reports about devices.
        proc: And about processes and itself.
        dev: Device nodes.
        etc: Configuration of the system.
        environment: Variables of the shell.
        may_use: Whether this user may read and write a device node.
        folder: Where runs are going to be written.
        host: Address of the robot, `HOST` or `HOST:PORT`; empty: no network check.
        probe_seconds: How long the network to the robot is measured [s].
        bytes_per_hour: Of frames that the task records, before compression.
        devices: Device nodes and CAN buses that the robot's configuration names, e.g. `/dev/ttyUSB0`: they have to be
            there.
    """

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    etc: Path = Path("/etc")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    may_use: Callable[[Path], bool] = _readable_and_writable
    folder: Path = Path()
    host: str = ""
    probe_seconds: float = 10.0
    bytes_per_hour: float = 2 * 128 * 128 * 3 * 10 * 3600.0
    devices: tuple[str, ...] = ()

    def distribution(self) -> str:
        """Return the name of the Linux distribution, e.g. `ubuntu`; empty if it is not known."""
        lines = (read_text(self.etc / "os-release") or "").splitlines()
        names = [line.partition("=")[2].strip().strip('"') for line in lines if line.startswith("ID=")]
        return names[0] if names else ""

    def processes(self) -> Iterator[tuple[int, str]]:
        """Yield each process: its number, and the name of its program."""
        for folder in entries(self.proc):
            if folder.name.isdecimal() and (name := read_text(folder / "comm")):
                yield int(folder.name), name

    def nodes(self, *patterns: str) -> list[Path]:
        """Return the device nodes below `dev` of these patterns, e.g. `video*`, in their order."""
        found = (path for pattern in patterns for path in self.dev.glob(pattern))
        return sorted(found, key=lambda path: (path.name.rstrip("0123456789"), len(path.name), path.name))

    def shown(self, node: Path) -> str:
        """Return the path of a device node as people know it, `/dev/...`."""
        return f"/dev/{node.relative_to(self.dev)}"

    def needs(self, node: Path) -> bool:
        """Return whether the robot's configuration names a device node, by itself or by a link such as `by-id/...`."""
        named = (self.dev / device.removeprefix("/dev/") for device in self.devices if device.startswith("/dev/"))
        return any(one.resolve() == node.resolve() for one in named)


def entries(folder: Path) -> list[Path]:
    """Return what is in a folder, sorted; nothing if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def read_text(path: Path) -> str | None:
    """Return the text of a file of the kernel, stripped; None if there is none or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> float | None:
    """Return the number in a file of the kernel; None if there is none."""
    text = read_text(path)
    try:
        return float(text) if text else None
    except ValueError:
        return None
