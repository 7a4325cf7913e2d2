"""What a UR driver finds out about its controller while the arm stands, each with its number, limit and cure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from robot_rl.arm.own_checks import SAME_MASS, OwnCheck

LEAST_VERSIONS = {3: (3, 3), 5: (5, 6)}
"""By the first number, the least PolyScope: RTDE came with 3.3, the question for remote control with 5.6."""


class UrFacts(NamedTuple):
    """What the controller says of itself.

    Attributes:
        version: As the dashboard gives it, e.g. `URSoftware 5.15.0.0 (Jan 01 2024)`.
        model: Of the arm without its series, e.g. `UR5` for a UR5e; empty where it was not asked.
        mode: Of the robot, e.g. `RUNNING`.
        safety: Its safety status, e.g. `NORMAL`.
        remote: Whether it is in remote control; None where it has no such mode (CB3).
        payload: Mass that it counts with [kg].
        speed_fraction: Where its speed slider stands (0 to 1).
    """

    version: str
    model: str
    mode: str
    safety: str
    remote: bool | None
    payload: float
    speed_fraction: float


def ur_checks(facts: UrFacts, rate: int, payload: float, model: str) -> Iterator[OwnCheck]:
    """Judge what a controller says of itself.

    Args:
        facts: What it says.
        rate: At which the driver wants to control [Hz].
        payload: Mass that the driver has declared [kg]; 0: none.
        model: That the robot file names, e.g. `ur5e`; empty: none.
    """
    yield check_firmware(facts.version, rate)
    if model:
        yield check_model(facts.model, model)
    running = facts.mode == "RUNNING"
    cure = "" if running else "switch it on and release its brakes at the pendant"
    yield OwnCheck("mode", "ok" if running else "fault", f"it is in the mode {facts.mode}", limit="RUNNING", cure=cure)
    safe = facts.safety in ("NORMAL", "REDUCED")
    cure = "" if safe else "clear it at the pendant; the arm's fault says how"
    text = f"its safety status is {facts.safety}"
    yield OwnCheck("safety", "ok" if safe else "fault", text, limit="NORMAL or REDUCED", cure=cure)
    if facts.remote is not None:
        where = "remote" if facts.remote else "local"
        cure = "" if facts.remote else "switch it to remote control at the pendant"
        text = f"the controller is in {where} control"
        yield OwnCheck("remote control", "ok" if facts.remote else "fault", text, limit="remote", cure=cure)
    yield _load(facts.payload, payload)
    slow = facts.speed_fraction < 0.995
    text = f"the speed slider stands at {100 * facts.speed_fraction:.0f} %"
    cure = "right for a first motion; move it to 100 % before you measure or train" if slow else ""
    value = round(100 * facts.speed_fraction, 1)
    yield OwnCheck("speed slider", "note" if slow else "ok", text, value, "%", "100 %", cure)


def check_firmware(version: str, rate: int) -> OwnCheck:
    """Return whether a version of PolyScope can be driven at a rate [Hz]."""
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None:
        cure = "report it with this text to the driver's authors"
        return OwnCheck("firmware", "note", f"the controller names its version as {version!r}", cure=cure)
    number = int(found[1]), int(found[2])
    value = float(found[0])
    least = LEAST_VERSIONS.get(number[0])
    limit = " or ".join(f"{major}.{minor} and newer" for major, minor in LEAST_VERSIONS.values())
    text = f"the UR controller runs PolyScope {found[0]}"
    if least is None or number < least:
        cure = f"update PolyScope ({limit})"
        return OwnCheck("firmware", "fault", text, value, limit=limit, cure=cure)
    if number[0] == 3 and rate > 125:
        text += f", which gives 125 states a second, not {rate}"
        return OwnCheck("firmware", "fault", text, value, limit=limit, cure="set `rate: 125` for a CB3")
    return OwnCheck("firmware", "ok", text, value, limit=limit)


def check_model(found: str, wanted: str) -> OwnCheck:
    """Return whether the arm is of the model that the robot file names; the controller does not tell the series (`e`).

    Args:
        found: Answer of the controller, e.g. `UR5`.
        wanted: Named in the file, e.g. `ur5e`; empty: none.
    """
    text = f"the controller's arm is a {found}"
    if not wanted or found.upper() == wanted.upper().removesuffix("E"):
        return OwnCheck("model", "ok", text, limit=wanted)
    cure = "check the address; or correct `model`, and with it the box, the start pose and the payload"
    return OwnCheck("model", "fault", f"{text}, the robot file says {wanted}", limit=wanted, cure=cure)


def _load(counted: float, declared: float) -> OwnCheck:
    value = round(counted, 3)
    if declared and abs(counted - declared) > SAME_MASS:
        text = f"the controller counts with a load of {counted:.2f} kg, the driver has declared {declared:.2f} kg"
        cure = "another program has set it; end that, and start the driver again"
        return OwnCheck("load", "fault", text, value, "kg", f"{declared:.2f} kg", cure)
    if counted < SAME_MASS:
        cure = "weigh what is mounted, and set `payload` and `centre_of_mass`; right for a bare flange only"
        return OwnCheck("load", "note", "no load is declared", value, "kg", "the mass of the tool", cure)
    text = f"the controller counts with a load of {counted:.2f} kg"
    return OwnCheck("load", "ok", text, value, "kg", "the mass of the tool")
