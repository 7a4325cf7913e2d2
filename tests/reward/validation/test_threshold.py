"""The threshold of a success: never below a half, as far from the known episodes as it can be, and drawn."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm

from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.calibration_plot import draw_calibration
from robot_rl.reward.validation.ground_truth import NEAR_MISS, GroundTruth
from robot_rl.reward.validation.probability_calibration import calibrate
from robot_rl.reward.validation.threshold import (
    DRAWN_AT,
    LEAST_THRESHOLD,
    MAX_FALSE_POSITIVES,
    least_threshold,
    threshold_curve,
)
from robot_rl.reward.validation.verdict import judge_labels


def fitted(successes, failures, allowed=0.001):
    truth = np.arange(len(successes) + len(failures)) < len(successes)
    names = tuple(f"e{n}" for n in range(len(truth)))
    return calibrate("success", names, truth, np.array([*successes, *failures]), max_false_positives=allowed)


def counts(calibration, probability):
    return bool(calibration(np.array(probability)) >= calibration.threshold)


def test_a_labeller_without_a_fault_does_not_call_a_tenth_a_success():
    rng = np.random.default_rng(0)
    found = fitted(rng.uniform(0.9, 0.99, 150), rng.uniform(0.01, 0.1, 150))
    assert not counts(found, 0.105)
    assert not counts(found, 0.4)
    assert counts(found, 0.9)


@given(
    highest=st.floats(1e-9, 0.4),
    lowest=st.floats(0.6, 1 - 1e-9),
    of_each=st.integers(10, 200),
)
def test_between_separated_answers_the_threshold_keeps_away_from_both(highest, lowest, of_each):
    """Even where the log-odds of the one side are far from 0: 1e-9 and 0.9 are separated by about a half."""
    found = fitted([lowest] * of_each, [highest] * of_each)
    assert found.threshold >= LEAST_THRESHOLD
    assert not counts(found, highest + 0.4 * (lowest - highest))
    assert counts(found, lowest)


@given(st.lists(st.floats(0, 1), min_size=10, max_size=30), st.lists(st.floats(0, 1), min_size=10, max_size=30))
def test_above_the_floor_it_parts_the_known_episodes_as_the_least_one_does(successes, failures):
    truth = np.arange(len(successes) + len(failures)) < len(successes)
    found = fitted(successes, failures, 0.1)
    score = found(np.array([*successes, *failures]))
    least = least_threshold(score[~truth], 0.1)
    assert found.threshold >= max(LEAST_THRESHOLD, least)
    if found.threshold > LEAST_THRESHOLD:
        assert ((score >= found.threshold) == (score >= least)).all()


@pytest.mark.parametrize("tied", [0.0, 0.3, 0.7, 1.0])
def test_who_answers_the_same_every_time_finds_no_success(tied):
    found = fitted([tied] * 40, [tied] * 20)
    assert found.threshold > found(np.array(tied)) + 1e-9
    assert not counts(found, tied)


def test_above_a_failure_on_top_only_certainty_is_left():
    found = fitted(np.linspace(0.6, 0.9, 20), [0.96, *np.linspace(0.01, 0.3, 19)], allowed=0.0)
    assert not counts(found, 0.97)
    assert counts(found, 0.99)


def test_the_curve_counts_both_kinds_at_each_threshold(tmp_path):
    truth, score = np.array([True, True, False, False]), np.array([0.9, 0.6, 0.7, 0.1])
    curve = threshold_curve(score, truth, [0.8, 0.5, 0.8])
    assert [tuple(point) for point in curve] == [(0.5, 1, 2, 2, 2), (0.8, 0, 2, 1, 2)]
    happened = np.arange(40) < 20
    probability = np.where(happened, 0.9, 0.1)
    found = calibrate("success", tuple(map(str, range(40))), happened, probability, max_false_positives=0.0)
    draw_calibration(found, happened, probability, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    drawn = threshold_curve(found(probability), happened, [*DRAWN_AT, found.threshold])
    assert all(a.found >= b.found for a, b in pairwise(drawn))


@pytest.mark.slow
def test_with_the_defaults_a_labeller_of_an_auc_near_1_is_certified_in_nine_of_ten_stores():
    """3,000 episodes, half of them for the calibration; AUC 0.99999 (normal scores whose means are 6 sigma apart)."""
    apart, count, fit = np.sqrt(2) * norm.ppf(0.99999), 3000, 0
    ids = np.array([f"e{n}" for n in range(count)])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.random(count) < 0.5
        near = ~truth & (rng.random(count) < 0.3)
        answers = expit(apart * (rng.normal(size=count) + apart * (truth - 0.5)))
        fitted = np.sort(rng.permutation(count)[: count // 2])
        known = truth[fitted], answers[fitted]
        found = calibrate("x", tuple(ids[fitted]), *known, max_false_positives=MAX_FALSE_POSITIVES)
        labels = [
            Label("k", ({"episode_id": name, "rows": [9]},), Answer(Status.OK, (value,)), "")
            for name, value in zip(ids.tolist(), answers.tolist(), strict=True)
        ]
        outcomes = zip(ids.tolist(), truth.tolist(), near.tolist(), strict=True)
        known_outcomes = {name: GroundTruth(success, NEAR_MISS if close else "") for name, success, close in outcomes}
        fit += judge_labels(QueryKind.SUCCESS, labels, known_outcomes, found).passed
    assert fit >= 9
