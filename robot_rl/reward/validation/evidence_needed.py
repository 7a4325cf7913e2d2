"""How many episodes a certificate needs, before any label is made."""

from __future__ import annotations

from collections.abc import Iterable

from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.gates import ENDING_EPISODES, GATES
from robot_rl.reward.validation.ground_truth import GroundTruth

COUNTED = {
    "false_positives_per_100_failures": "failures",
    "near_miss_false_positive_rate": "near misses",
    "recall": "successes",
    "precision": "successes",
}
"""What a figure of the gate is a share of. Those called a success are successes, if no label is wrong."""


def evidence_needed() -> dict[str, int]:
    """Return the least number of each sort of episode with which labels of success pass the gate for ending episodes.

    It holds for labels without a fault; each fault makes it more. The episodes of a calibration do not count.
    """
    needed: dict[str, int] = {}
    for condition in GATES[QueryKind.SUCCESS][ENDING_EPISODES]:
        if condition.figure in COUNTED and condition.faultless_needed is not None:
            sort = COUNTED[condition.figure]
            needed[sort] = max(needed.get(sort, 0), condition.faultless_needed)
    return needed


def describe_needed(known: Iterable[GroundTruth]) -> str:
    """Return how many episodes a certificate needs beside how many there are, for people."""
    needed = evidence_needed()
    outcomes = [one.success for one in known]
    parts = ", ".join(f"{count} {sort}" for sort, count in needed.items())
    return (
        f"a certificate for {ENDING_EPISODES} needs at least {parts}, all without a fault and beside those of "
        f"`robot-rl label calibrate`; known are {outcomes.count(False)} failures and {outcomes.count(True)} successes"
    )
