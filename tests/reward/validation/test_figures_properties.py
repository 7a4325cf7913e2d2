"""Figures against their definitions, computed the long way, and what must not change them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, kendalltau

from robot_rl.reward.validation import figures
from robot_rl.statistics import faultless_trials

SCORES = st.integers(0, 8).map(lambda level: level / 8)
"""Few levels, so that ties are frequent."""


@st.composite
def cases(draw, least=1):
    """Truth and score of some episodes."""
    rows = draw(st.lists(st.tuples(st.booleans(), SCORES), min_size=least, max_size=30))
    return np.array([truth for truth, _ in rows], bool), np.array([score for _, score in rows])


def auc_by_pairs(truth, score):
    pairs = list(itertools.product(score[truth], score[~truth]))
    return np.mean([(high > low) + 0.5 * (high == low) for high, low in pairs]) if pairs else math.nan


def precision_at(truth, score, threshold):
    return truth[score >= threshold].mean()


@given(cases())
def test_roc_auc_is_the_share_of_pairs_in_the_right_order(case):
    assert figures.roc_auc(*case) == pytest.approx(auc_by_pairs(*case), nan_ok=True)


@given(cases())
def test_average_precision_is_the_mean_precision_at_the_successes(case):
    truth, score = case
    wanted = np.mean([precision_at(truth, score, one) for one in score[truth]]) if truth.any() else math.nan
    assert figures.average_precision(truth, score) == pytest.approx(wanted, nan_ok=True)


@given(cases(), st.integers(0, 2**31))
def test_no_figure_depends_on_the_order_of_the_episodes(case, seed):
    truth, score = case
    order = np.random.default_rng(seed).permutation(len(truth))
    positive = score >= 0.5
    for figure in (figures.roc_auc, figures.average_precision, figures.calibration_error, figures.brier):
        assert figure(truth[order], score[order]) == pytest.approx(figure(truth, score), nan_ok=True)
    for figure in (figures.precision, figures.recall, figures.false_positive_rate, figures.kappa):
        assert figure(truth[order], positive[order]) == pytest.approx(figure(truth, positive), nan_ok=True)


@given(cases(), st.floats(0.1, 5), st.floats(-3, 3))
def test_ranking_figures_do_not_depend_on_the_scale_of_the_score(case, slope, offset):
    truth, score = case
    other = np.exp(slope * score + offset)
    assert figures.roc_auc(truth, other) == pytest.approx(figures.roc_auc(truth, score), nan_ok=True)
    assert figures.average_precision(truth, other) == pytest.approx(
        figures.average_precision(truth, score), nan_ok=True
    )


@given(cases())
def test_the_opposite_score_has_the_opposite_auc(case):
    truth, score = case
    assert figures.roc_auc(truth, -score) == pytest.approx(1 - figures.roc_auc(truth, score), nan_ok=True)


@given(cases())
def test_a_rate_is_one_of_the_four_counts_over_its_margin(case):
    truth, score = case
    positive = score >= 0.5
    hits, alarms = int((truth & positive).sum()), int((~truth & positive).sum())
    for figure, part, whole in (
        (figures.precision, hits, int(positive.sum())),
        (figures.recall, hits, int(truth.sum())),
        (figures.false_positive_rate, alarms, int((~truth).sum())),
    ):
        assert figure(truth, positive) == pytest.approx(part / whole if whole else math.nan, nan_ok=True)


@given(cases())
def test_probabilities_that_are_the_truth_have_no_error(case):
    truth, _ = case
    assert figures.brier(truth, truth.astype(float)) == 0.0
    assert figures.calibration_error(truth, truth.astype(float)) == 0.0


@given(cases(), st.integers(1, 20))
def test_the_calibration_error_lies_between_the_mean_error_and_one(case, bins):
    """One bin has the gap of the means; more bins can only find more."""
    truth, score = case
    whole = figures.calibration_error(truth, score, bins=1)
    assert whole == pytest.approx(abs(truth.mean() - score.mean()))
    assert whole - 1e-12 <= figures.calibration_error(truth, score, bins=bins) <= 1.0


@given(cases())
def test_agreement_is_mutual_and_complete_with_oneself(case):
    one, score = case
    other = score >= 0.5
    assert figures.kappa(one, other) == pytest.approx(figures.kappa(other, one), nan_ok=True)
    assert math.isnan(figures.kappa(one, one)) or figures.kappa(one, one) == pytest.approx(1.0)


@given(st.lists(SCORES, min_size=2, max_size=12))
def test_order_in_time_turns_its_sign_when_played_backwards(values):
    values = np.array(values)
    forward = figures.value_order_correlation(values)
    assert -1.0 - 1e-9 <= forward <= 1.0 + 1e-9
    assert figures.value_order_correlation(values[::-1]) == pytest.approx(-forward)


@given(st.lists(st.tuples(st.integers(0, 3), SCORES), min_size=2, max_size=15))
def test_order_agreement_is_kendalls_tau(rows):
    grade, value = np.array([g for g, _ in rows]), np.array([v for _, v in rows])
    wanted = kendalltau(grade, value).statistic if len(set(grade.tolist())) > 1 else math.nan
    assert figures.order_agreement(grade, value) == pytest.approx(wanted, nan_ok=True)


@given(st.integers(1, 400), st.data())
def test_a_share_has_the_wilson_interval_of_scipy(total, data):
    count = data.draw(st.integers(0, total))
    found = figures.share(count, total)
    interval = binomtest(count, total).proportion_ci(method="wilson")
    assert found.value == count / total
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.05, 0.2, 0.5])
def test_faultless_trials_are_the_fewest_that_show_a_rate(rate):
    enough = faultless_trials(rate)
    assert binomtest(0, enough).proportion_ci(method="wilson").high <= rate
    assert binomtest(0, enough - 1).proportion_ci(method="wilson").high > rate


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=40), st.integers(0, 100))
def test_an_interval_can_be_repeated_and_holds_the_range_of_the_data(values, seed):
    values = np.array(values)
    first, again = (
        figures.with_interval(lambda i: float(values[i].mean()), len(values), resamples=50, seed=seed) for _ in "ab"
    )
    assert first == again
    assert values.min() - 1e-9 <= first.low <= first.high <= values.max() + 1e-9


def test_more_episodes_make_an_interval_narrower():
    widths = []
    for count in (20, 200, 2000):
        values = np.random.default_rng(0).normal(size=count)
        found = figures.with_interval(lambda i, v=values: float(v[i].mean()), count, resamples=200)
        widths.append(found.high - found.low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
