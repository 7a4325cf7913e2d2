"""Reports of labels whose error is known."""

import math

import numpy as np
import pytest

from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.comparison import compare_success
from robot_rl.reward.validation.figures import Figure
from robot_rl.reward.validation.gates import Condition, Fitness, check_gates
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.reward.validation.probability_calibration import Calibration
from robot_rl.reward.validation.report import make_report


def clip(name, *rows):
    return {"episode_id": name, "rows": list(rows)}


def label(answer, *clips):
    answer = Answer(Status.OK, tuple(answer)) if not isinstance(answer, Status) else Answer(answer)
    return Label("k", clips, answer, "")


def success_labels(values):
    return [label([v] if isinstance(v, float) else v, clip(f"e{n}", 0, 9)) for n, v in enumerate(values)]


TRUTH = {f"e{n}": GroundTruth(n < 50, "near_miss" if 50 <= n < 70 else "idle" if n >= 70 else "") for n in range(100)}


def test_false_positives_are_counted_by_episode_and_by_how_they_failed():
    values = [0.9] * 45 + [0.2] * 5 + [0.8] * 2 + [0.1] * 48
    report = make_report(QueryKind.SUCCESS, success_labels(values), TRUTH)
    found = report.figures
    assert found["precision"].value == pytest.approx(45 / 47)
    assert found["recall"].value == pytest.approx(0.9)
    assert found["false_positives_per_100_failures"].value == pytest.approx(4.0)
    assert found["near_miss_false_positive_rate"].value == pytest.approx(0.1)
    assert found["false_positive_rate.idle"].value == 0.0
    assert found["roc_auc"].low < found["roc_auc"].value < found["roc_auc"].high
    assert not any(gate.passed for gate in report.gates if "ending" in gate.use)


def test_an_answer_without_a_value_is_never_a_success():
    values = [0.9] * 40 + [Status.UNPARSABLE] * 10 + [Status.UNSURE] * 10 + [Status.REFUSED] * 40
    report = make_report(QueryKind.SUCCESS, success_labels(values), TRUTH)
    assert report.figures["recall"].value == pytest.approx(0.8)
    assert report.figures["false_positives_per_100_failures"].value == 0.0
    assert report.figures["without_value"].value == pytest.approx(0.6)
    assert report.figures["unreadable_rate"].value == pytest.approx(0.5)
    assert report.statuses == {"ok": 40, "unsure": 10, "unparsable": 10, "refused": 40}


def test_the_episodes_of_the_calibration_are_left_out_and_its_threshold_counts():
    calibration = Calibration("success", 1.0, 0.0, 0.95, tuple(f"e{n}" for n in range(0, 100, 2)), 25)
    report = make_report(QueryKind.SUCCESS, success_labels([0.9] * 50 + [0.1] * 50), TRUTH, calibration)
    assert report.compared == 50
    assert report.figures["recall"].value == 0.0
    assert math.isnan(report.figures["precision"].value)


def test_a_perfect_labeller_passes_only_with_enough_episodes():
    def gate(count):
        truth = {f"e{n}": GroundTruth(n % 2 == 0, "near_miss" if n % 4 == 1 else "idle") for n in range(count)}
        calibration = Calibration("success", 1.0, 0.0, 0.5, (), 0)
        values = [0.99 if n % 2 == 0 else 0.01 for n in range(count)]
        report = make_report(QueryKind.SUCCESS, success_labels(values), truth, calibration)
        return next(g for g in report.gates if "ending" in g.use)

    assert not gate(100).passed
    assert any("false_positives" in reason for reason in gate(100).reasons if reason.startswith("not shown"))
    assert gate(1000).passed


def test_what_is_not_known_does_not_pass():
    condition = Condition("recall", at_least=0.8)
    assert condition.check({}).fitness is Fitness.NOT_SHOWN
    assert condition.check({"recall": Figure(math.nan, math.nan, math.nan)}).fitness is Fitness.NOT_SHOWN
    assert condition.check({"recall": Figure(0.9, 0.79, 0.95)}).fitness is Fitness.NOT_SHOWN
    assert condition.check({"recall": Figure(0.9, 0.8, 0.95)}).fitness is Fitness.FIT
    assert Condition("x", at_most=0.1).check({"x": Figure(0.15, 0.0, 0.2)}).fitness is Fitness.UNFIT
    assert not any(gate.passed for kind in QueryKind for gate in check_gates(kind, {}))


def test_a_clock_has_order_and_no_gap():
    truth = {f"e{n}": GroundTruth(n < 10) for n in range(20)}
    labels = [label(np.arange(5) / 4, clip(f"e{n}", *range(5))) for n in range(20)]
    report = make_report(QueryKind.PROGRESS, labels, truth)
    assert report.figures["voc_of_successes"].value == pytest.approx(1.0)
    assert report.figures["final_gap"].value == pytest.approx(0.0)
    assert not any(gate.passed for gate in report.gates)


def test_progress_is_compared_with_the_truth_at_the_frames_shown():
    real = np.array([0.0, 0.5, 1.0, 0.5, 0.0])  # forward and back
    truth = {f"e{n}": GroundTruth(n < 10, progress=real) for n in range(20)}
    good = [label(real[[0, 2, 4]], clip(f"e{n}", 0, 2, 4)) for n in range(20)]
    clock = [label([0.0, 0.5, 1.0], clip(f"e{n}", 0, 1, 2)) for n in range(20)]
    assert make_report(QueryKind.PROGRESS, good, truth).figures["rank_correlation_to_truth"].value == pytest.approx(1.0)
    assert make_report(QueryKind.PROGRESS, good, truth).figures["mean_absolute_error"].value == 0.0
    found = make_report(QueryKind.PROGRESS, clock, truth).figures
    assert found["rank_correlation_to_truth"].value == pytest.approx(1.0)


def test_preferences_are_judged_by_the_size_of_the_gap():
    truth = {
        "a": GroundTruth(True, progress=np.linspace(0, 1, 101)),
        "b": GroundTruth(False, progress=np.linspace(0, 1, 101)),
    }
    labels = []
    for row in range(1, 100):  # wrong where the gap is below a third
        first_is_closer = (row > 50) if abs(row - 50) > 17 else (row < 50)
        value = 0.0 if first_is_closer else 1.0
        labels += [label([value], clip("a", 50), clip("b", row)), label([1 - value], clip("b", row), clip("a", 50))]
    found = make_report(QueryKind.PREFERENCE, labels, truth).figures
    assert found["accuracy_largest_gaps"].value == 1.0
    assert found["accuracy_smallest_gaps"].value == 0.0
    assert found["flip_rate"].value == 0.0


def test_nothing_to_compare_with_is_an_error():
    with pytest.raises(DataError, match="no episode with a label has a known outcome"):
        make_report(QueryKind.SUCCESS, success_labels([0.5]), {"e0": GroundTruth(None)})
    with pytest.raises(DataError, match="no episode with a readable label"):
        make_report(QueryKind.PROGRESS, [label(Status.UNSURE, clip("e0", 1))], TRUTH)


def test_labellers_are_compared_on_the_same_episodes():
    good = success_labels([0.9] * 45 + [0.3] * 5 + [0.1] * 50)
    bad = success_labels([0.9, 0.1] * 50)
    found = compare_success({"good": good, "bad": bad[:90]}, TRUTH, {})
    assert found.episodes == 90
    assert found.auc["good"].value > 0.95
    assert found.difference["bad"].high < 0
    assert abs(found.kappa["bad"]) < 0.2
    with pytest.raises(DataError, match="at least two"):
        compare_success({"good": good}, TRUTH, {})
