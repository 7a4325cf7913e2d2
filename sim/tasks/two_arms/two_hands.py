"""Both hands of one person, each of which leads an arm; meanwhile the policy keeps the other one."""

from __future__ import annotations

from collections.abc import Mapping

from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Taken
from robot_rl.geometry import Pose
from sim.operator import ScriptedOperator


class TwoHands:
    """An operator of several arms.

    Args:
        hands: Who leads each arm, by its name.
    """

    def __init__(self, hands: Mapping[str, ScriptedOperator]) -> None:
        self.hands = dict(hands)

    def use(self, intervention: InterventionConfig) -> None:
        """Intervene as these profiles say, from the next reset on; demonstrations stay the same."""
        for hand in self.hands.values():
            hand.use(intervention)

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode."""
        for hand in self.hands.values():
            hand.reset(seed, demonstrate)

    can_be_called = True
    """The hand whose turn it is comes."""

    def call_for_help(self) -> None:
        """Call both hands."""
        for hand in self.hands.values():
            hand.call_for_help()

    def act(self, state: RobotState, T_base_reset: Pose) -> Taken | None:
        """Return the actions of the arms that a hand leads; None where the policy leads both."""
        taken = {arm: hand.act(state.arms[arm], T_base_reset) for arm, hand in self.hands.items()}
        return {arm: action for arm, action in taken.items() if action is not None} or None
