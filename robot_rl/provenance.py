"""Where a result came from: source revision, package versions, machine, command line."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("robot_rl", "torch", "numpy", "mujoco", "gymnasium", "zarr")
"""Packages whose versions can change a result."""

SOURCE_TREE = Path(__file__).resolve().parents[1]
"""The folder that holds the package: a checkout, or site-packages."""


def provenance(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Facts about this process, as JSON values.

    Args:
        argv: Command line; None takes that of this process.
    """
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "argv": list(sys.argv if argv is None else argv),
        "pid": os.getpid(),
        "git": git_state(SOURCE_TREE),
        "versions": package_versions(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cpu_count": os.cpu_count(),
    }


def git_state(tree: Path) -> dict[str, Any]:
    """Revision of a checkout and whether files differ from it.

    Returns:
        `revision` and `dirty`, both None with a `note` if `tree` is not the top of a git checkout.
    """
    try:
        top = _git(tree, "rev-parse", "--show-toplevel")
        if Path(top).resolve() != tree.resolve():
            return {"revision": None, "dirty": None, "note": "not a git checkout"}
        return {"revision": _git(tree, "rev-parse", "HEAD"), "dirty": bool(_git(tree, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError) as error:
        note = str(getattr(error, "stderr", None) or error).strip()
        return {"revision": None, "dirty": None, "note": note}


def package_versions() -> dict[str, str | None]:
    """Versions of Python and of `PACKAGES`; None for one that is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def cpu_model() -> str:
    """Name of the processor, as far as the operating system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
