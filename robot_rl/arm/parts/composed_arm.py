"""An arm with a gripper and a force sensor of other makers, as one `ArmDriver`."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from robot_rl.arm.driver import ArmDriver, Receive, chain_of, links_of
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.own_checks import ChecksItself, OwnCheck
from robot_rl.arm.parts.part import ArmPart, GripperPart, WrenchPart
from robot_rl.arm.parts.payload import Payload
from robot_rl.env.robot_io import Links
from robot_rl.geometry import Pose

_KEPT = 1000
"""Samples of the sensor that are kept until the arm's next pose."""


class ComposedArm:
    """An arm and its parts; what the arm itself measures of them is left out.

    What the parts measure is reported in the thread of the arm, behind its next pose: by then the orientation is known
    by which the weight of the tool is taken off.

    Args:
        arm: The arm.
        gripper: Replaces its gripper; None keeps that.
        wrench: Replaces what it measures of forces; None keeps that.
        payload: What hangs on the sensor.
    """

    def __init__(
        self, arm: ArmDriver, gripper: GripperPart | None, wrench: WrenchPart | None, payload: Payload
    ) -> None:
        self._arm, self._gripper, self._wrench, self._payload = arm, gripper, wrench, payload
        self._samples: deque[tuple[int, np.ndarray]] = deque(maxlen=_KEPT)
        self._receive: Receive | None = None

    @property
    def measures(self) -> frozenset[str]:
        """What the arm measures, and the parts."""
        own = set(self._arm.measures)
        own |= {"gripper"} if self._gripper is not None else set()
        own |= {"wrench"} if self._wrench is not None else set()
        return frozenset(own)

    @property
    def links(self) -> Links | None:
        """Where the links of the arm are; None where its driver does not know."""
        return links_of(self._arm)

    @property
    def chain(self) -> Chain | None:
        """Kinematics of the arm; None where its driver does not know."""
        return chain_of(self._arm)

    def start(self, receive: Receive) -> None:
        """Start all of them."""
        self._receive = receive
        if self._gripper is not None:
            self._gripper.start()
        if self._wrench is not None:
            self._wrench.start(lambda stamp, wrench: self._samples.append((stamp, wrench)))
        self._arm.start(self._take)

    def move_to(self, T_base_target: Pose) -> None:
        """Set the set-point of the arm."""
        self._arm.move_to(T_base_target)

    def move_gripper(self, width: float) -> None:
        """Set the width of the gripper [m]."""
        if self._gripper is not None:
            self._gripper.move(width)
        else:
            self._arm.move_gripper(width)

    def hold(self) -> None:
        """Hold the arm; a gripper keeps what it holds."""
        self._arm.hold()

    def faults(self) -> list[str]:
        """Return why the arm or one of its parts would not obey now."""
        found = [fault for part in (self._arm, *self._parts()) for fault in part.faults()]
        tilted = self._payload.fault() if self._wrench is not None else None
        return [*found, tilted] if tilted is not None else found

    def recover(self) -> None:
        """End the faults of all, after a person has consented.

        Raises:
            ArmStoppedError: if one stays.
        """
        for part in (self._arm, *self._parts()):
            if part.faults():
                part.recover()
        self._payload.restart()

    def own_checks(self) -> list[OwnCheck]:
        """Return what the arm finds out about itself, as a `ChecksItself`."""
        return list(self._arm.own_checks()) if isinstance(self._arm, ChecksItself) else []

    def close(self) -> None:
        """Release all of them."""
        for part in (self._arm, *self._parts()):
            part.close()

    def _parts(self) -> list[ArmPart]:
        return [part for part in (self._gripper, self._wrench) if part is not None]

    def _take(self, part: str, stamp: int, value: Any) -> None:
        if self._receive is None:
            return
        if (part == "gripper" and self._gripper is not None) or (part == "wrench" and self._wrench is not None):
            return
        self._receive(part, stamp, value)
        if part == "pose":
            if self._gripper is not None and (width := self._gripper.width) is not None:
                self._receive("gripper", stamp, width)
            while self._samples:
                measured, wrench = self._samples.popleft()
                self._receive("wrench", measured, self._payload.contact(wrench, value))
