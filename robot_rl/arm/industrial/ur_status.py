"""What a UR controller says about itself over RTDE, in sentences with their cure.

Bits and numbers: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", `safety_status_bits` and `robot_mode`.
"""

from __future__ import annotations

_SAFETY = (
    (7, "the emergency stop is pressed", "turn the button to release it, and switch the arm on at the pendant"),
    (6, "the emergency stop of the arm is pressed", "turn the button to release it, and switch the arm on"),
    (5, "the emergency stop of the cell is pressed", "release it, and switch the arm on at the pendant"),
    (
        2,
        "protective stop: the arm met more force, or a limit, than its safety settings allow",
        "free the arm, then consent",
    ),
    (4, "safeguard stop", "leave the safeguarded space and reset the safeguard"),
    (8, "violation of a safety limit", "restart the safety system at the pendant"),
    (9, "fault of the safety system", "restart the controller"),
    (3, "recovery mode: a joint is outside its safety limits", "move it back at the pendant"),
)
"""Bit, what it means, and the cure; the first that is set is the cause of the others."""
_MODES = {
    -1: "NO_CONTROLLER",
    0: "DISCONNECTED",
    1: "CONFIRM_SAFETY",
    2: "BOOTING",
    3: "POWER_OFF",
    4: "POWER_ON",
    5: "IDLE",
    6: "BACKDRIVE",
    7: "RUNNING",
    8: "UPDATING_FIRMWARE",
}
RUNNING = 7


def safety_fault(bits: int) -> str | None:
    """Return why the safety system stops the arm, with the cure; None if it does not."""
    for bit, meaning, cure in _SAFETY:
        if bits >> bit & 1:
            return f"{meaning}; {cure}"
    return None


def mode_fault(mode: int) -> str | None:
    """Return why the arm cannot move in a robot mode, with the cure; None if it can."""
    if mode == RUNNING:
        return None
    name = _MODES.get(mode, str(mode))
    return f"the UR arm is in the mode {name}; switch it on and release its brakes at the pendant"
