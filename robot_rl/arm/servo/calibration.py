"""Where the zero and the range of every servo are: LeRobot's calibration file, or what the servos themselves keep.

`lerobot-calibrate` writes both. In its convention a joint is at zero in the middle of its range.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.arm.servo.family import COUNTS_PER_TURN
from robot_rl.arm.servo.servo_bus import ServoBus
from robot_rl.errors import ConfigError

_KEYS = ("id", "drive_mode", "homing_offset", "range_min", "range_max")
_RADIANS = 2.0 * math.pi / COUNTS_PER_TURN
CURE = "`lerobot-calibrate --robot.type=so101_follower --robot.port=PORT --robot.id=NAME` calibrates an arm"


@dataclass(frozen=True)
class ServoCalibration:
    """Of one servo.

    Attributes:
        ident: Its id.
        offset: What the servo itself takes off its position [counts].
        low: Least position [counts].
        high: Largest position [counts].
    """

    ident: int
    offset: int
    low: int
    high: int


class CountScale:
    """From counts of servos to radians, and back.

    Args:
        calibrations: Of each servo.
    """

    def __init__(self, calibrations: Sequence[ServoCalibration]) -> None:
        self._low = np.array([one.low for one in calibrations], float)
        self._high = np.array([one.high for one in calibrations], float)
        self._middle = 0.5 * (self._low + self._high)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest angle [rad], shapes (n,)."""
        return self.angles(self._low), self.angles(self._high)

    def angles(self, counts: np.ndarray) -> np.ndarray:
        """Return angles [rad], shape (n,)."""
        return (counts - self._middle) * _RADIANS

    def counts(self, angles: np.ndarray) -> np.ndarray:
        """Return the counts nearest to angles [rad], within the calibrated range. Integers, shape (n,)."""
        return np.clip(np.rint(angles / _RADIANS + self._middle), self._low, self._high).astype(int)


def load_calibration(path: Path, idents: Mapping[str, int]) -> dict[str, ServoCalibration]:
    """Read a calibration file of LeRobot.

    Args:
        path: The file.
        idents: Ids by the names of the servos.

    Raises:
        ConfigError: if it cannot be read, or is that of another kind of arm.
    """
    try:
        tree: Any = json.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the calibration {path}: {error.strerror}; {CURE}") from error
    except ValueError as error:
        raise ConfigError(f"the calibration {path} is no JSON file: {error}") from error
    if not isinstance(tree, dict) or set(tree) != set(idents):
        named = ", ".join(map(str, tree)) if isinstance(tree, dict) else "no servos"
        raise ConfigError(f"the calibration {path} is of {named}; the arm has {', '.join(idents)}")
    return {name: _entry(path, name, tree[name], ident) for name, ident in idents.items()}


def _entry(path: Path, name: str, entry: Any, ident: int) -> ServoCalibration:
    if not isinstance(entry, dict) or any(type(entry.get(key)) is not int for key in _KEYS):
        raise ConfigError(f"the calibration {path}: {name} needs the whole numbers {', '.join(_KEYS)}")
    if entry["id"] != ident:
        raise ConfigError(f"the calibration {path}: {name} has id {entry['id']}, the arm's has {ident}")
    if not entry["range_min"] < entry["range_max"]:
        raise ConfigError(f"the calibration {path}: range_min of {name} is not below range_max; {CURE}")
    return ServoCalibration(ident, entry["homing_offset"], entry["range_min"], entry["range_max"])


def read_calibration(bus: ServoBus, idents: Mapping[str, int]) -> dict[str, ServoCalibration]:
    """Return the calibration that the servos keep.

    Raises:
        ServoSilentError: if one does not answer.
        LineLostError: if the port is gone.
    """
    registers = bus.family.registers
    columns = [bus.get(register) for register in (registers.offset, registers.low, registers.high)]
    rows = zip(idents, idents.values(), *columns, strict=True)
    return {name: ServoCalibration(ident, offset, low, high) for name, ident, offset, low, high in rows}


def check_calibration(kept: Mapping[str, ServoCalibration], file: Mapping[str, ServoCalibration] | None) -> None:
    """Check that the servos keep the calibration of the file, or any if there is no file.

    Raises:
        ConfigError: naming the first servo that differs, or that none is calibrated.
    """
    if file is None:
        if all(one.high - one.low >= COUNTS_PER_TURN - 1 for one in kept.values()):
            raise ConfigError(f"the servos of this arm are not calibrated: all have their full range; {CURE}")
        return
    for name, expected in file.items():
        if (found := kept[name]) != expected:
            raise ConfigError(
                f"the calibration is of another arm, or older than the last one: servo {found.ident} ({name}) keeps "
                f"offset {found.offset} and range {found.low} to {found.high}, the file has {expected.offset} and "
                f"{expected.low} to {expected.high}; name the right file, or calibrate: {CURE}"
            )
