"""What a certificate needs is enough for labels without a fault, and one episode less is not."""

import pytest

from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.evidence_needed import describe_needed, evidence_needed
from robot_rl.reward.validation.figures import Figure, share
from robot_rl.reward.validation.gates import ENDING_EPISODES, Fitness, check_gates
from robot_rl.reward.validation.ground_truth import GroundTruth


def fitness(successes, failures, near):
    perfect, none = Figure(1.0, 1.0, 1.0), Figure(0.0, 0.0, 0.0)
    found = {
        "calibrated": perfect,
        "roc_auc": perfect,
        "calibration_error": none,
        "precision": share(successes, successes),
        "recall": share(successes, successes),
        "false_positives_per_100_failures": Figure(*(100 * value for value in share(0, failures))),
        "near_miss_false_positive_rate": share(0, near),
    }
    return next(g for g in check_gates(QueryKind.SUCCESS, found) if g.use == ENDING_EPISODES).fitness


def test_it_is_enough():
    needed = evidence_needed()
    assert fitness(needed["successes"], needed["failures"], needed["near misses"]) is Fitness.FIT


@pytest.mark.parametrize("sort", ["successes", "failures", "near misses"])
def test_one_less_is_not(sort):
    needed = evidence_needed()
    needed[sort] -= 1
    assert fitness(needed["successes"], needed["failures"], needed["near misses"]) is Fitness.NOT_SHOWN


def test_it_counts_what_is_known():
    line = describe_needed([GroundTruth(True), GroundTruth(False), GroundTruth(False), GroundTruth(None)])
    assert "known are 2 failures and 1 successes" in line
