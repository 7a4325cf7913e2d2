import numpy as np
import pytest

from robot_rl.errors import DataError
from robot_rl.reward.validation.figures import calibration_error
from robot_rl.reward.validation.probability_calibration import calibrate, read_calibration


def overconfident(count, seed=0):
    """True log-odds x, of which the model says 3 x + 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.0, 1.5, count)
    truth = rng.uniform(size=count) < 1 / (1 + np.exp(-x))
    return truth, 1 / (1 + np.exp(-(3 * x + 1)))


def fitted(truth, probability, allowed=0.01):
    names = tuple(f"e{n}" for n in range(len(truth)))
    return calibrate("success", names, truth, probability, max_false_positives=allowed)


def test_what_distorted_the_probabilities_is_undone():
    found = fitted(*overconfident(4000))
    assert found.slope == pytest.approx(1 / 3, abs=0.03)
    assert found.offset == pytest.approx(-1 / 3, abs=0.12)
    truth, probability = overconfident(2000, seed=1)
    assert calibration_error(truth, found(probability)) < 0.03 < calibration_error(truth, probability)


@pytest.mark.parametrize("allowed", [0.0, 0.01, 0.1])
def test_the_threshold_lets_no_more_failures_pass_than_allowed(allowed):
    truth, probability = overconfident(1000)
    found = fitted(truth, probability, allowed)
    passed = found(probability) >= found.threshold
    assert passed[~truth].mean() <= allowed
    assert found(probability[~truth]).max() < found.threshold or allowed > 0
    if allowed:
        assert passed[~truth].sum() == int(allowed * (~truth).sum())  # and no fewer


def test_separable_answers_give_a_finite_slope():
    truth = np.arange(40) < 20
    found = fitted(truth, np.where(truth, 0.95, 0.05))
    assert 0 < found.slope < 10
    assert (found(np.array([0.95, 0.05])) >= found.threshold).tolist() == [True, False]


def test_few_outcomes_are_refused():
    with pytest.raises(DataError, match="9 successes and 31 failures are too few"):
        fitted(np.arange(40) < 9, np.full(40, 0.5))


def test_it_is_kept_in_a_file(tmp_path):
    found = fitted(*overconfident(200))
    found.write(tmp_path / "c.json")
    assert read_calibration(tmp_path / "c.json") == found
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        read_calibration(tmp_path / "c.json")
    with pytest.raises(DataError, match="robot-rl label calibrate"):
        read_calibration(tmp_path / "none.json")
