"""Labellers compared: on shared episodes, with the same resampling, and fairly to each."""

import numpy as np
import pytest

from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.validation import figures
from robot_rl.reward.validation.comparison import compare_success
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.reward.validation.probability_calibration import Calibration

COUNT = 60
TRUTH = {f"e{n}": GroundTruth(n % 2 == 0) for n in range(COUNT)}
HAPPENED = np.array([one.success for one in TRUTH.values()])


def labels(values):
    """One label for each episode; None is an answer without values."""
    return [
        Label("k", ({"episode_id": f"e{n}", "rows": [9]},), answer, "")
        for n, value in enumerate(values)
        for answer in [Answer(Status.UNSURE) if value is None else Answer(Status.OK, (float(value),))]
    ]


def noisy(noise, seed=0):
    return np.clip(HAPPENED + np.random.default_rng(seed).normal(0, noise, COUNT), 0, 1).tolist()


def test_a_labeller_is_its_own_equal():
    values = noisy(0.6)
    found = compare_success({"one": labels(values), "two": labels(values)}, TRUTH, {})
    assert tuple(found.difference["two"]) == (0.0, 0.0, 0.0)
    assert found.kappa["two"] == pytest.approx(1.0)
    assert found.auc["one"] == found.auc["two"]


def test_differences_are_those_of_the_areas_and_turn_with_the_order():
    rows = {"good": labels(noisy(0.3)), "bad": labels(noisy(2.0, seed=1))}
    there = compare_success(rows, TRUTH, {})
    back = compare_success(dict(reversed(rows.items())), TRUTH, {})
    assert there.difference["bad"].value == pytest.approx(there.auc["bad"].value - there.auc["good"].value)
    assert back.difference["good"].value == pytest.approx(-there.difference["bad"].value)
    assert back.difference["good"].low == pytest.approx(-there.difference["bad"].high)
    assert there.kappa["bad"] == pytest.approx(back.kappa["good"])
    assert there.difference["bad"].high < 0 < back.difference["good"].low


def test_only_episodes_count_that_all_could_read():
    values = noisy(0.6)
    some = [None if n < 10 else value for n, value in enumerate(values)]
    found = compare_success({"all": labels(values), "some": labels(some)}, TRUTH, {})
    assert found.episodes == COUNT - 10
    wanted = figures.roc_auc(HAPPENED[10:], np.array(values)[10:])
    assert found.auc["all"].value == found.auc["some"].value == pytest.approx(wanted)


def test_what_any_of_them_was_fitted_to_is_left_out():
    calibration = Calibration("one", 1.0, 0.0, 0.5, ("e0", "e1"), 1)
    rows = {"one": labels(noisy(0.6)), "two": labels(noisy(0.6, seed=1))}
    assert compare_success(rows, TRUTH, {"one": calibration}, ["e2"]).episodes == COUNT - 3


def test_each_has_its_own_threshold():
    """The second finds everything five times as improbable, and its calibration knows that."""
    values = np.where(HAPPENED, 0.9, 0.2)
    rows = {"one": labels(values), "two": labels(values / 5)}
    assert compare_success(rows, TRUTH, {}).kappa["two"] == pytest.approx(0.0)
    calibrated = Calibration("two", 1.0, 0.0, 0.1, (), 0)
    assert compare_success(rows, TRUTH, {"two": calibrated}).kappa["two"] == pytest.approx(1.0)


def test_without_a_shared_episode_there_is_nothing_to_compare():
    first, second = labels(noisy(0.6))[:30], labels(noisy(0.6))[30:]
    with pytest.raises(DataError, match="share no episode whose outcome is known"):
        compare_success({"one": first, "two": second}, TRUTH, {})
