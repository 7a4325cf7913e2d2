"""Graphics: off-screen rendering for the simulation, and whether torch can use the graphics card that is there."""

from __future__ import annotations

import ctypes.util
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine, read_text
from robot_rl.doctor.contract.result import CheckResult

EGL_LIBRARY = ctypes.util.find_library("EGL")
"""For off-screen rendering; None without one."""


def check_graphics(
    machine: Machine,
    egl: str | None = EGL_LIBRARY,
    simulates: bool | None = None,
    torch_folder: Path | None = None,
) -> Iterator[CheckResult]:
    """Look for EGL, a graphics card, and the kind of torch that is installed; torch is not imported, for its seconds.

    Args:
        machine: What is examined.
        egl: Name of the EGL library.
        simulates: Whether MuJoCo is installed; None finds out.
        torch_folder: Where torch is installed; None finds out.
    """
    if find_spec("mujoco") is not None if simulates is None else simulates:
        yield CheckResult(
            "EGL",
            "ok" if egl else "note",
            f"cameras of the simulation can be rendered without a screen ({egl})"
            if egl
            else "there is no EGL library: the simulation has no cameras (--obs state works)",
            cure="" if egl else "sudo apt install libegl1 libgl1",
        )
    cards = [path for path in machine.nodes("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
    if torch_folder is None:
        spec = find_spec("torch")
        torch_folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    cuda = _cuda_of(torch_folder) if torch_folder else None
    if not cards:
        yield CheckResult(
            "GPU",
            "ok",
            "no NVIDIA card is there: the learner computes on the processor, which is enough for policies "
            "on states and on features of a frozen encoder",
        )
    elif cuda is None:
        yield CheckResult(
            "GPU",
            "note",
            f"{len(cards)} NVIDIA card(s) are there, but the installed torch is for processors only",
            cure="pip install --force-reinstall torch",
        )
    elif (driver := read_text(machine.proc / "driver/nvidia/version")) is None:
        yield CheckResult(
            "GPU",
            "fault",
            f"{len(cards)} NVIDIA card(s) are there, but their driver is not loaded",
            cure="nvidia-smi; sudo apt install nvidia-driver, then restart the machine",
        )
    else:
        version = re.search(r"\d+\.\d+(\.\d+)?", driver)
        driver_version = version[0] if version else "of unknown version"
        text = f"{len(cards)} NVIDIA card(s), driver {driver_version}, torch for CUDA {cuda}"
        refused = [card for card in cards if not machine.may_use(card)]
        yield CheckResult(
            "GPU",
            "note" if refused else "ok",
            f"{text}; this user may not use {machine.shown(refused[0])}" if refused else f"{text}: use --device cuda",
            cure="sudo usermod -aG video,render $USER, then log out and in" if refused else "",
        )


def _cuda_of(folder: Path) -> str | None:
    """Return for which version of CUDA torch was built, from its `version.py`; None for processors only."""
    found = re.search(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", read_text(folder / "version.py") or "", re.MULTILINE)
    return found[1] if found else None
