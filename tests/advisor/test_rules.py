"""A rule looks at the past only, and a calibration is judged on episodes that did not set its threshold."""

import numpy as np
import pytest

from robot_rl.advisor.calibration import LEAST, Played, calibrate, judge
from robot_rl.calling.rules import RULES, SMOOTHED, ValueTrace
from robot_rl.errors import DataError

PERIOD = 0.1


@pytest.mark.parametrize("name", RULES)
def test_the_risk_after_a_step_does_not_depend_on_what_comes_later(name):
    values = np.random.default_rng(0).uniform(size=41)
    whole = RULES[name](ValueTrace(values, 100))
    assert whole.shape == (40,)
    for steps in (1, 7, 40):
        np.testing.assert_allclose(RULES[name](ValueTrace(values[: steps + 1], 100)), whole[:steps])


def test_each_rule_by_hand():
    falling = ValueTrace(np.concatenate((np.full(10, 0.8), np.full(10, 0.2))), 200)
    assert RULES["value"](falling)[8] == pytest.approx(0.0)
    assert RULES["value"](falling)[9 + SMOOTHED - 1] == pytest.approx(0.6)
    assert RULES["time"](falling)[-1] == pytest.approx(19 / 200)
    assert RULES["doubt"](falling)[-1] == pytest.approx(0.8 * 19 / 200)


def episodes(failures, successes, steps=50):
    """The risk of each failure jumps from 0 to 1 at step 20; that of each success stays 0, but for its last step."""
    failed = np.r_[np.zeros(20), np.ones(steps - 20)]
    done = np.r_[np.zeros(steps - 1), 1.0]
    return [Played(failed, success=False)] * failures + [Played(done, success=True)] * successes


def test_a_rule_that_sees_every_failure_calls_in_time_and_never_falsely():
    found = calibrate(episodes(12, 20), precision=0.9, lead_s=1.0, control_period=PERIOD)
    assert (found.threshold, found.precision, found.recall) == (1.0, 1.0, 1.0)
    assert (found.calls, found.failures, found.episodes) == (6, 6, 16)
    assert found.saved_s == pytest.approx(29 * PERIOD)
    assert found.false_calls_per_hour == 0.0
    late = calibrate(episodes(12, 20), precision=0.9, lead_s=3.5, control_period=PERIOD)
    assert late.calls == 0  # the risk rose within the lead


def test_a_given_threshold_is_judged_on_all_episodes_also_where_nothing_fails():
    found = judge(episodes(3, 20), 0.5, lead_s=1.0, control_period=PERIOD)
    assert (found.threshold, found.precision, found.recall, found.episodes) == (0.5, 1.0, 1.0, 23)
    alone = judge(episodes(0, 20), 0.5, lead_s=0.0, control_period=PERIOD)
    assert (alone.recall, alone.calls, alone.precision) == (None, 20, 0.0)
    assert alone.false_calls_per_hour == pytest.approx(3600.0 / (50 * PERIOD))


def test_chance_is_not_mistaken_for_skill():
    rng = np.random.default_rng(1)
    noise = [Played(rng.uniform(size=50), success=bool(number % 2)) for number in range(400)]
    found = calibrate(noise, precision=0.9, lead_s=1.0, control_period=PERIOD)
    low, high = found.precision_ci95
    assert found.threshold is None or (low <= 0.5 <= high)


def test_too_few_episodes_of_a_kind_are_refused():
    with pytest.raises(
        DataError, match=f"there are {2 * LEAST - 1} failures among 27 episodes .* at least {2 * LEAST}"
    ):
        calibrate(episodes(2 * LEAST - 1, 20), precision=0.9, lead_s=1.0, control_period=PERIOD)
