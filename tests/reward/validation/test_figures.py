import math

import numpy as np
import pytest

from robot_rl.reward.validation import figures

TRUTH = np.array([True, True, False, False])
SCORE = np.array([0.9, 0.4, 0.6, 0.1])


def test_by_hand():
    assert figures.roc_auc(TRUTH, SCORE) == 0.75  # of the four pairs, (0.4, 0.6) is in the wrong order
    assert figures.roc_auc(TRUTH, np.ones(4)) == 0.5
    assert figures.average_precision(TRUTH, SCORE) == pytest.approx((1.0 + 2 / 3) / 2)
    positive = SCORE >= 0.5
    assert figures.precision(TRUTH, positive) == 0.5
    assert figures.recall(TRUTH, positive) == 0.5
    assert figures.false_positive_rate(TRUTH, positive) == 0.5
    assert figures.brier(TRUTH, SCORE) == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    assert figures.calibration_error(TRUTH, SCORE) == pytest.approx((0.1 + 0.6 + 0.6 + 0.1) / 4)
    assert figures.calibration_error(np.array([True, False]), np.array([0.55, 0.57])) == pytest.approx(0.06)
    assert figures.kappa(np.array([1, 1, 0, 0], bool), np.array([1, 0, 0, 0], bool)) == pytest.approx(0.5)
    assert figures.order_agreement(np.array([2, 1, 0]), np.array([0.3, 0.2, 0.1])) == pytest.approx(1.0)


def test_a_clock_has_perfect_order_and_a_constant_has_none():
    assert figures.value_order_correlation(np.arange(5) / 4) == pytest.approx(1.0)
    assert figures.value_order_correlation(np.ones(5)) == 0.0
    assert figures.value_order_correlation(np.array([0.5])) == 0.0
    assert figures.rank_correlation(np.ones(3), np.arange(3)) == 0.0


def test_what_cannot_be_told_is_no_number():
    nothing = np.zeros(3, bool)
    assert math.isnan(figures.roc_auc(nothing, np.ones(3)))
    assert math.isnan(figures.precision(TRUTH, np.zeros(4, bool)))
    assert math.isnan(figures.recall(nothing, nothing))
    assert math.isnan(figures.false_positive_rate(np.ones(3, bool), nothing))
    assert math.isnan(figures.share(0, 0).value)


def test_intervals_cover_as_often_as_they_say():
    """The AUC of scores of which the truth is known, in 60 draws of 60 episodes."""
    rng = np.random.default_rng(0)
    true_auc, covered = 0.7602, 0  # of N(1, 1) over N(0, 1): Phi(1 / sqrt 2)
    for number in range(60):
        truth = rng.uniform(size=60) < 0.5
        score = rng.normal(truth.astype(float), 1.0)
        figure = figures.with_interval(
            lambda i, t=truth, s=score: figures.roc_auc(t[i], s[i]), 60, resamples=100, seed=number
        )
        covered += figure.low <= true_auc <= figure.high
    assert 50 <= covered <= 60


def test_a_share_of_all_is_not_certain():
    assert figures.share(20, 20).low < 0.9
    assert figures.share(20, 20).value == 1.0
