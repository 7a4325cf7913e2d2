"""What a Franka driver finds out about its arm while it stands, each with its number, limit and cure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from robot_rl.arm.own_checks import SAME_MASS, OwnCheck

NOTE_BELOW, FAULT_BELOW = 95.0, 90.0
"""Share of the commands of 1 kHz that reach the arm in time [%]; the limits of libfranka's `communication_test`."""


class FrankaFacts(NamedTuple):
    """What the arm says of itself.

    Attributes:
        package: Version of franky-control; it refuses an arm whose system speaks another version of the protocol.
        hand: Version of the hand's server; None without a hand.
        mode: Of the robot, e.g. `Move`.
        in_control: Whether our controller runs.
        success_rate: Share of the last 100 commands that came in time (0 to 1).
        hand_mass: Of the end effector that Desk knows [kg].
        load: Mass beyond it that was declared [kg].
    """

    package: str
    hand: int | None
    mode: str
    in_control: bool
    success_rate: float
    hand_mass: float
    load: float


def franka_checks(facts: FrankaFacts, payload: float) -> Iterator[OwnCheck]:
    """Judge what an arm says of itself.

    Args:
        facts: What it says.
        payload: Mass beyond the end effector that the driver has declared [kg].
    """
    hand = "there is no hand" if facts.hand is None else f"the hand's server has version {facts.hand}"
    text = f"the arm's system speaks the protocol of franky-control {facts.package}; {hand}"
    yield OwnCheck("firmware", "ok", text, limit="system 5.9 or newer with the wheel of PyPI")
    ready = facts.mode in ("Idle", "Move")
    cure = "" if ready else "release its stop, let go of its guiding buttons, or recover it in Desk"
    yield OwnCheck("mode", "ok" if ready else "fault", f"it is in the mode {facts.mode}", limit="Move", cure=cure)
    runs = "runs" if facts.in_control else "does not run"
    cure = "" if facts.in_control else "unlock the brakes and switch FCI on in Desk; no other program may hold the arm"
    text = f"our controller {runs}"
    yield OwnCheck("remote control", "ok" if facts.in_control else "fault", text, limit="runs", cure=cure)
    if facts.in_control:
        yield _in_time(100.0 * facts.success_rate)
    yield _load(facts, payload)


def _in_time(share: float) -> OwnCheck:
    late = share < NOTE_BELOW
    return OwnCheck(
        "commands in time",
        "fault" if share < FAULT_BELOW else "note" if late else "ok",
        f"{share:.0f} % of the last 100 commands of 1 kHz reached the arm in time",
        round(share, 1),
        "%",
        f"at least {NOTE_BELOW:g} %",
        "PREEMPT_RT kernel, governor `performance`, a network card of its own to the arm" if late else "",
    )


def _load(facts: FrankaFacts, payload: float) -> OwnCheck:
    value = round(facts.hand_mass + facts.load, 3)
    text = f"the arm counts with an end effector of {facts.hand_mass:.2f} kg and a load of {facts.load:.2f} kg"
    if abs(facts.load - payload) > SAME_MASS:
        text += f"; the driver has declared {payload:.2f} kg" if payload else "; another program has declared that"
        cure = "end other programs and start the driver again" if payload else "set `payload` and `centre_of_mass`"
        return OwnCheck("load", "fault" if payload else "note", text, value, "kg", f"{payload:.2f} kg of load", cure)
    if facts.hand is not None and facts.hand_mass < SAME_MASS:
        cure = "choose the Franka Hand as the end effector in Desk; without it the arm sinks"
        return OwnCheck("load", "fault", text, value, "kg", "the mass of the hand, 0.73 kg", cure)
    return OwnCheck("load", "ok", text, value, "kg", "what is mounted")
