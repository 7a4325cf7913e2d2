"""Calibration of probabilities: monotone, the same in any order, optimal, and thresholds that keep their promise."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.validation.probability_calibration import (
    UNCALIBRATED_THRESHOLD,
    Calibration,
    calibrate,
    counts_as_success,
    fit_logistic,
    labelled_success,
    read_calibration,
    sigmoid,
)
from robot_rl.reward.validation.threshold import least_threshold

PROBABILITY = st.floats(0, 1)


@st.composite
def labelled(draw, least=10):
    """At least ten successes and ten failures with their probabilities."""
    successes = draw(st.lists(PROBABILITY, min_size=least, max_size=25))
    failures = draw(st.lists(PROBABILITY, min_size=least, max_size=25))
    truth = np.arange(len(successes) + len(failures)) < len(successes)
    return truth, np.array(successes + failures)


def fitted(truth, probability, allowed=0.1):
    names = tuple(f"e{n}" for n in range(len(truth)))
    return calibrate("success", names, truth, probability, max_false_positives=allowed)


@given(labelled(), st.integers(0, 2**31))
@example((np.arange(21) < 11, np.array([0.0] * 9 + [1.33179e-05, 1.1920929e-07] + [0.0] * 10)), 0)
def test_the_order_of_the_episodes_does_not_matter(case, seed):
    truth, probability = case
    order = np.random.default_rng(seed).permutation(len(truth))
    one, other = fitted(truth, probability), fitted(truth[order], probability[order])
    assert (one.slope, one.offset, one.threshold) == (other.slope, other.offset, other.threshold)


@given(labelled(), st.lists(PROBABILITY, min_size=2, max_size=20))
def test_it_is_monotone_and_stays_a_probability(case, probabilities):
    found = fitted(*case)
    calibrated = found(np.sort(probabilities))
    assert ((calibrated >= 0) & (calibrated <= 1)).all()
    steps = np.diff(calibrated)
    assert (steps >= -1e-12).all() if found.slope >= 0 else (steps <= 1e-12).all()


@given(labelled())
def test_the_fit_is_the_maximum_of_the_likelihood_with_platts_targets(case):
    """There the gradient is zero: the mean probability is the mean target, and so is each one weighted by x."""
    truth, probability = case
    x = np.log(np.clip(probability, 1e-6, 1 - 1e-6)) - np.log1p(-np.clip(probability, 1e-6, 1 - 1e-6))
    assume(np.ptp(x) > 1e-3)
    slope, offset = fit_logistic(x[:, None], truth)
    positives, negatives = truth.sum(), (~truth).sum()
    target = np.where(truth, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    error = sigmoid(slope * x + offset) - target
    assert abs(error.sum()) < 1e-3
    assert abs(error @ x) < 1e-2


@given(st.lists(PROBABILITY, min_size=1, max_size=50), st.floats(0, 0.99))
def test_a_threshold_keeps_its_promise_and_is_the_least_that_does(failures, allowed):
    failures = np.array(failures)
    threshold = least_threshold(failures, allowed)
    assert (failures >= threshold).sum() <= int(allowed * len(failures))
    below = np.nextafter(threshold, -1)
    assert (failures >= below).sum() > int(allowed * len(failures))


@given(labelled(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_who_allows_more_false_positives_gets_no_higher_threshold(case, one, other):
    low, high = sorted((one, other))
    assert fitted(*case, allowed=high).threshold <= fitted(*case, allowed=low).threshold


@given(st.floats(0.1, 5), st.floats(-3, 3), st.floats(0, 1), PROBABILITY)
def test_an_answer_counts_as_its_calibrated_probability_does(slope, offset, threshold, probability):
    calibration = Calibration("success", slope, offset, threshold, (), 0)
    counts = bool(calibration(np.array([probability]))[0] >= threshold)
    assert counts_as_success(probability, calibration) == counts
    assert labelled_success(Answer(Status.OK, (probability,)), calibration) is counts
    assert counts_as_success(probability, None) == (probability >= UNCALIBRATED_THRESHOLD)


@pytest.mark.parametrize("status", [Status.UNSURE, Status.UNPARSABLE, Status.REFUSED])
def test_an_answer_without_values_is_no_label(status):
    assert labelled_success(Answer(status), None) is None


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=20))
def test_the_sigmoid_never_overflows_and_is_symmetric(values):
    x = np.array(values)
    with np.errstate(over="raise"):
        y = sigmoid(x)
    np.testing.assert_allclose(y + sigmoid(-x), 1.0, atol=1e-12)
    assert ((y >= 0) & (y <= 1)).all()
    np.testing.assert_allclose(sigmoid(np.log([1 / 3, 1.0, 3.0])), [0.25, 0.5, 0.75])


@given(slope=st.floats(0.01, 10), offset=st.floats(-5, 5), threshold=PROBABILITY, count=st.integers(0, 5))
def test_a_file_holds_every_bit(tmp_path_factory, slope, offset, threshold, count):
    file = tmp_path_factory.mktemp("calibration") / "c.json"
    made = Calibration("success", slope, offset, threshold, tuple(f"e{n}" for n in range(count)), count)
    made.write(file)
    assert read_calibration(file) == made
