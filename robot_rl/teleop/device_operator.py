"""An operator at one or more devices: takes over by moving (or by holding a button), hands back by letting go.

It is an `Operator` like a scripted one, so both are recorded alike: both actions, who was in control, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.env.robot_io import RobotState
from robot_rl.env.supervision import Supervised
from robot_rl.env.task import Operator, TaskSpec
from robot_rl.geometry import Pose
from robot_rl.teleop.device import Device, DeviceLostError, ToolObserver
from robot_rl.teleop.mapping import REQUEST_ROLES, CommandMapper, DeviceMap

LET_GO = 0.4
"""Time without motion after which control goes back to the policy [s], so that a short pause is no hand-back."""


class Hand(NamedTuple):
    """A device and what maps its readings."""

    device: Device
    mapper: CommandMapper


class Person(Operator, Protocol):
    """Somebody who leads with devices."""

    def watch(self) -> bool:
        """Poll the devices between episodes, for buttons and for a lost device that is back.

        Returns:
            True if one of them is being moved.
        """
        ...


class DeviceOperator:
    """An operator with one or more devices; the device that moves first leads until it is at rest.

    Args:
        devices: The devices and their maps.
        spec: The task.
        supervision: Holds the arm when a device in use is lost.
        on_press: Called with each of the `REQUEST_ROLES` whose button is pressed on a device.
        clock: Clock of smoothing and of the time at rest; None takes the machine's.
    """

    def __init__(
        self,
        devices: Sequence[tuple[Device, DeviceMap]],
        spec: TaskSpec,
        supervision: Supervised,
        *,
        on_press: Callable[[str], object] = lambda role: None,
        clock: Clock | None = None,
    ) -> None:
        self._hands = [Hand(device, CommandMapper(mapping, device, spec)) for device, mapping in devices]
        self._supervision, self._on_press, self._clock = supervision, on_press, clock or SystemClock()
        self._idle = np.zeros(spec.action_size, np.float32)
        self._leading: Hand | None = None
        self._demonstrate = False
        self._rested_since: int | None = None
        self._lost: set[str] = set()  # the holds of devices that do not respond

    @property
    def leading(self) -> str | None:
        """Name of the device that leads now, or None."""
        return self._leading.device.name if self._leading is not None else None

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start a new episode."""
        del seed  # a human is not seeded
        self._demonstrate, self._leading, self._rested_since = demonstrate, None, None
        for hand in self._hands:
            hand.mapper.reset()

    def act(self, state: RobotState, T_base_reset: Pose) -> np.ndarray | None:
        """Return the operator's action for this step, or None while the policy is left in control."""
        del T_base_reset  # moves relative to where the tool is
        return self.act_at(state.T_base_tcp)

    def act_at(self, T_base_tcp: Pose) -> np.ndarray | None:
        """Return the operator's action with the tool at this pose, or None while the policy is left in control."""
        now = self._clock.now()
        wanted = self._poll(T_base_tcp, now)
        if self._leading is None:
            self._leading = next((hand for hand, (_, active) in wanted.items() if active), None)
            self._rested_since = None
        if self._leading is None:
            return self._idle if self._demonstrate else None
        action, active = wanted.get(self._leading, (self._idle, False))
        if active:
            self._rested_since = None
            return action
        self._rested_since = now if self._rested_since is None else self._rested_since
        if (now - self._rested_since) / NS_PER_S < _let_go_time(self._leading):
            return self._idle
        self._leading = None
        return self._idle if self._demonstrate else None

    def watch(self) -> bool:
        """Poll the devices between episodes; see `Person`."""
        return any(active for _, active in self._poll(Pose.identity(), self._clock.now()).values())

    def close(self) -> None:
        """Close the devices."""
        for hand in self._hands:
            hand.device.close()

    def _poll(self, T_base_tcp: Pose, now: int) -> dict[Hand, tuple[np.ndarray, bool]]:
        """Return each device's action and whether it takes control; hold the arm while a device in use is lost."""
        wanted = {}
        for hand in self._hands:
            hold = _hold_of(hand.device)
            if isinstance(hand.device, ToolObserver):
                hand.device.observe(T_base_tcp)
            try:
                reading = hand.device.read()
            except DeviceLostError as error:
                self._lost.add(hold)
                if len(self._hands) == 1 or hand is self._leading:  # a spare one may be unplugged
                    self._supervision.hold(hold, f"{error}; holding until it is back")
                continue
            if hold in self._lost:
                self._lost.discard(hold)
                self._supervision.release(hold)
                hand.mapper.reset()
            intent = hand.mapper.intent(reading, T_base_tcp, now)
            for role in sorted(intent.pressed.intersection(REQUEST_ROLES)):
                self._on_press(role)
            active = intent.take if hand.mapper.mapping.engage == "hold" else intent.take or bool(intent.action.any())
            wanted[hand] = (intent.action, active)
        return wanted


def _hold_of(device: Device) -> str:
    """Return the name of the hold while a device is lost: its own, as two of one model have the same name."""
    return f"device {device.name} {id(device):x}"


def _let_go_time(hand: Hand) -> float:
    """Return the time at rest after which control goes back [s]; a released button hands back at once."""
    return 0.0 if hand.mapper.mapping.engage == "hold" else LET_GO
