import numpy as np
import pytest
from scipy import stats

from robot_rl.statistics import bootstrap_interval, faultless_trials, interquartile_mean, wilson_interval


def test_wilson_interval_by_hand():
    # n = 100, p = 0.96, z = 1.959964: centre 0.979207, half 0.042942, scale 1.038415.
    assert wilson_interval(96, 100) == pytest.approx((0.901629, 0.984337), abs=1e-6)


@pytest.mark.parametrize("n", [1, 7, 100, 300])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_interval_agrees_with_scipy(n, confidence):
    for successes in {0, 1, n // 2, n}:
        expected = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
        assert wilson_interval(successes, n, confidence) == pytest.approx(tuple(expected), abs=1e-12)


def test_wilson_interval_stays_in_range_and_holds_its_level():
    low, high = wilson_interval(0, 20)
    assert low == 0.0
    assert 0.1 < high < 0.2
    assert wilson_interval(20, 20)[1] == 1.0
    assert wilson_interval(0, 0) == (0.0, 1.0)
    rng = np.random.default_rng(0)
    hits = [low <= 0.9 <= high for low, high in (wilson_interval(k, 50) for k in rng.binomial(50, 0.9, size=2000))]
    assert 0.93 < np.mean(hits) < 0.98


@pytest.mark.parametrize(("successes", "n", "confidence"), [(-1, 5, 0.95), (6, 5, 0.95), (1, 5, 1.0), (1, 5, 0.0)])
def test_wilson_interval_refuses_nonsense(successes, n, confidence):
    with pytest.raises(ValueError, match=r"successes in|confidence"):
        wilson_interval(successes, n, confidence)


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_so_many_faultless_trials_are_enough_and_one_fewer_is_not(rate, confidence):
    n = faultless_trials(rate, confidence)
    assert wilson_interval(0, n, confidence)[1] <= rate
    assert wilson_interval(0, n - 1, confidence)[1] > rate


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_faultless_trials_refuses_what_no_number_shows(rate):
    with pytest.raises(ValueError, match="rate"):
        faultless_trials(rate)


def test_interquartile_mean_by_hand():
    assert interquartile_mean([100.0, 2.0, 3.0, -50.0]) == 2.5  # one value cut at either end
    assert interquartile_mean([1.0, 2.0, 6.0]) == 3.0  # nothing to cut
    assert interquartile_mean([7.0]) == 7.0
    values = np.random.default_rng(1).normal(size=(5, 6))
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25, axis=None))
    with pytest.raises(ValueError, match="no values"):
        interquartile_mean([])


def test_bootstrap_is_repeatable_and_brackets_the_estimate():
    values = np.random.default_rng(3).normal(0.95, 0.02, size=20)
    low, high = bootstrap_interval([values], np.mean)
    assert (low, high) == bootstrap_interval([values], np.mean)
    assert (low, high) != bootstrap_interval([values], np.mean, seed=1)
    assert min(values) < low < np.mean(values) < high < max(values)


def test_bootstrap_draws_within_each_stratum():
    # Two tasks without spread: every resample holds five of each, so the mean cannot move.
    assert bootstrap_interval([[0.0] * 5, [1.0] * 5], np.mean) == (0.5, 0.5)
    low, high = bootstrap_interval([[0.0] * 5 + [1.0] * 5], np.mean)
    assert low < 0.5 < high


def test_bootstrap_of_a_mean_agrees_with_the_standard_error():
    values = np.random.default_rng(2).normal(size=400)
    low, high = bootstrap_interval([values], np.mean, resamples=4000)
    assert (high - low) / (2 * 1.96) == pytest.approx(values.std() / 20, rel=0.1)


def test_bootstrap_refuses_nonsense():
    for strata in ([], [[]], [[1.0], []]):
        with pytest.raises(ValueError, match="at least one value"):
            bootstrap_interval(strata)
    with pytest.raises(ValueError, match="confidence"):
        bootstrap_interval([[1.0]], confidence=95)
