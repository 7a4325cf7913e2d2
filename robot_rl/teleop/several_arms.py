"""A person at several arms: with a device for each, or with devices that lead one arm at a time and change over.

It knows which device leads which arm, not what any of them does: that is the `DeviceOperator` of each arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotState
from robot_rl.env.supervision import Supervised
from robot_rl.env.task import Taken, TaskSpec
from robot_rl.geometry import Pose
from robot_rl.teleop.device import Device
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.mapping import DeviceMap

Hands = Sequence[tuple[Device, DeviceMap]]
"""Devices and their maps."""


class SeveralArmsOperator:
    """An operator of several arms. An arm that nobody leads stays with the policy; in a demonstration it rests.

    Args:
        own: The devices of each arm that has its own, by its name.
        shared: Devices that lead the chosen arm, at first the task's first one.
        beside: Devices of a second hand, which lead the arm after the chosen one.
        spec: The task.
        supervision: Holds the arms when a device in use is lost.
        on_press: As for `DeviceOperator`.
        on_chosen: Called with the name of the arm that the shared devices lead from now on.
        clock: As for `DeviceOperator`.
    """

    def __init__(
        self,
        own: Mapping[str, Hands],
        shared: Hands,
        spec: TaskSpec,
        supervision: Supervised,
        *,
        beside: Hands = (),
        on_press: Callable[[str], object] = lambda role: None,
        on_chosen: Callable[[str], object] = lambda arm: None,
        clock: Clock | None = None,
    ) -> None:
        def leader(arm: str, hands: Hands) -> DeviceOperator:
            return DeviceOperator(hands, spec.of_arm(arm), supervision, on_press=on_press, clock=clock)

        self._own = {arm: leader(arm, hands) for arm, hands in own.items()}
        self._shared = {arm: leader(arm, shared) for arm in spec.arms} if shared else {}
        self._beside = {arm: leader(arm, beside) for arm in spec.arms} if beside else {}
        self._idle = {arm: np.zeros(spec.of_arm(arm).action_size, np.float32) for arm in spec.arms}
        self._order, self._on_chosen = tuple(spec.arms), on_chosen
        self._demonstrate = False
        self._wanted = self.chosen = self._order[0]
        """The arm that the shared devices lead."""

    @property
    def shares(self) -> bool:
        """Whether there are devices that lead one arm at a time."""
        return bool(self._shared)

    def choose_next(self) -> None:
        """Have the shared devices lead the next arm, from the next step on; from any thread."""
        if self._shared:
            self._wanted = self._after(self._wanted)

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start a new episode; the chosen arm stays chosen."""
        self._demonstrate = demonstrate
        for operator in (*self._own.values(), *self._shared.values(), *self._beside.values()):
            operator.reset(seed, demonstrate)

    def act(self, state: RobotState, T_base_reset: Pose) -> Taken | None:
        """Return the actions of the arms that are led in this step, or None while the policy is left in control."""
        del T_base_reset  # moves relative to where each tool is
        return self.act_at({arm: one.T_base_tcp for arm, one in state.arms.items()})

    def act_at(self, tools: Mapping[str, Pose]) -> Taken | None:
        """Return the same, by the pose of each arm's tool in its base frame."""
        taken: dict[str, np.ndarray] = dict(self._idle) if self._demonstrate else {}
        for arm, operator in self._polled():
            action = operator.act_at(tools[arm])
            if action is not None and (arm not in taken or operator.leading is not None):
                taken[arm] = action
        return taken or None

    def watch(self) -> bool:
        """Poll the devices between episodes; see `DeviceOperator.watch`."""
        return any([operator.watch() for _, operator in self._polled()])

    def close(self) -> None:
        """Close the devices."""
        for operator in (*self._own.values(), *list(self._shared.values())[:1], *list(self._beside.values())[:1]):
            operator.close()

    def _polled(self) -> list[tuple[str, DeviceOperator]]:
        """Return who is asked now: the shared devices, a second hand, then each arm's own, which come first."""
        if self._shared and self._wanted != self.chosen:
            self.chosen = self._wanted
            for operator in (*self._shared.values(), *self._beside.values()):
                operator.reset(0, self._demonstrate)
            self._on_chosen(self.chosen)
        hands = ((self.chosen, self._shared), (self._after(self.chosen), self._beside))
        return [*((arm, leads[arm]) for arm, leads in hands if leads), *self._own.items()]

    def _after(self, arm: str) -> str:
        return self._order[(self._order.index(arm) + 1) % len(self._order)]


Leader = DeviceOperator | SeveralArmsOperator
"""Who leads the arm of a task, or its arms."""


def make_person(
    own: Mapping[str, Hands],
    shared: Hands,
    beside: Hands,
    spec: TaskSpec,
    supervision: Supervised,
    on_press: Callable[[str], object],
    on_chosen: Callable[[str], object],
) -> Leader:
    """Return who leads the arm of a task, or its arms; the parameters are those of `SeveralArmsOperator`."""
    if spec.arms:
        return SeveralArmsOperator(
            own, shared, spec, supervision, beside=beside, on_press=on_press, on_chosen=on_chosen
        )
    return DeviceOperator(shared, spec, supervision, on_press=on_press)
