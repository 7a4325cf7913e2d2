"""What a driver reports while its arm stands: every measurement of some seconds, its faults, and its own checks."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from robot_rl.arm.driver import ArmDriver, DriverHost, chain_of
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.own_checks import ChecksItself, OwnCheck
from robot_rl.clock import NS_PER_S, Clock, WallClock

logger = logging.getLogger(__name__)

FIRST = 5.0
"""Longest wait for the first pose [s]."""


@dataclass(frozen=True, eq=False)
class ArmObservation:
    """What was reported.

    Attributes:
        samples: By part: when it arrived [ns], when it was measured [ns], and its value.
        measures: Parts that the driver claims to measure.
        faults: Why the arm would not obey, at the end.
        problems: What the driver reported as wrong.
        own: Of its own checks.
        seconds: How long it was observed after the first pose [s].
        max_age: Oldest pose with which the arm may move [s].
        chain: Kinematics of its joints; None where the driver does not know them.
    """

    samples: dict[str, list[tuple[int, int, Any]]]
    measures: frozenset[str]
    faults: Sequence[str]
    problems: Sequence[str]
    own: Sequence[OwnCheck]
    seconds: float
    max_age: float
    chain: Chain | None = None


@dataclass
class _Observer:
    """Hosts the driver, and collects."""

    max_age: float
    wall: Clock = field(default_factory=WallClock)
    problems: list[str] = field(default_factory=list)
    samples: dict[str, list[tuple[int, int, Any]]] = field(default_factory=lambda: defaultdict(list))
    first: threading.Event = field(default_factory=threading.Event)

    def problem(self, text: str) -> None:
        """Keep what is wrong."""
        if text not in self.problems:
            self.problems.append(text)

    def receive(self, part: str, stamp: int, value: Any) -> None:
        """Keep a measurement."""
        self.samples[part].append((self.wall.now(), stamp, value))
        if part == "pose":
            self.first.set()


def observe(make_driver: Callable[[DriverHost], ArmDriver], seconds: float, max_age: float) -> ArmObservation:
    """Start a driver, observe it for some seconds from its first pose on, and close it; nothing is commanded.

    Raises:
        ConfigError: if a setting of it is not valid.
        RobotLostError: if the arm cannot be reached.
    """
    observer = _Observer(max_age)
    driver = make_driver(observer)
    try:
        driver.start(observer.receive)
        observer.first.wait(FIRST)
        begun = observer.wall.now()
        if observer.first.is_set():
            time.sleep(seconds)
        observed = (observer.wall.now() - begun) / NS_PER_S
        own = list(driver.own_checks()) if isinstance(driver, ChecksItself) else []
        faults = list(driver.faults())
        return ArmObservation(
            {part: list(rows) for part, rows in list(observer.samples.items())},
            frozenset(driver.measures),
            faults,
            observer.problems,
            own,
            observed,
            max_age,
            chain_of(driver),
        )
    finally:
        driver.close()
