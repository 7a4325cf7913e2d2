"""The certificate beside a classifier: it belongs to one file, and decides who may end episodes."""

import json
from dataclasses import replace

import pytest
from random_heads import classifier

from robot_rl.errors import UncertifiedError
from robot_rl.reward.classifier.certificate import certify, check_fit
from robot_rl.reward.classifier.classifier import read_classifier_file
from robot_rl.reward.classifier.report import CONDITIONS, USE, ClassifierReport
from robot_rl.reward.validation.certificate import certificate_path
from robot_rl.reward.validation.figures import Figure, share
from robot_rl.reward.validation.gates import ConditionResult, Fitness, GateResult, check_conditions


@pytest.fixture
def file(tmp_path):
    classifier().write(tmp_path / "c.pt")
    return read_classifier_file(tmp_path / "c.pt")


def report(*parts, causes=()):
    gate = GateResult(USE, tuple(ConditionResult(one, f"{one} part") for one in parts), causes)
    return ClassifierReport((), {}, gate, ())


def test_a_fit_classifier_may_end_episodes_without_a_warning(file):
    certify(file, report(Fitness.FIT))
    assert check_fit(file) == report(Fitness.FIT).gate


def test_one_that_is_not_shown_to_be_fit_may_with_a_warning(file):
    certify(file, report(Fitness.FIT, Fitness.NOT_SHOWN))
    assert check_fit(file) == report(Fitness.FIT, Fitness.NOT_SHOWN).gate
    assert "more episodes with a known outcome" in check_fit(file).explanation


def test_an_unfit_one_may_not_and_its_faults_and_causes_are_named(file):
    certify(file, report(Fitness.UNFIT, Fitness.NOT_SHOWN, causes=("it is dark",)))
    with pytest.raises(UncertifiedError, match=r"unfit part; .*shown part; it is dark.*reward\.allow_unfit"):
        check_fit(file)
    assert check_fit(file, allowed=True).fitness is Fitness.UNFIT, "the risk does not make it fit"


def test_without_a_certificate_nobody_may(file):
    with pytest.raises(UncertifiedError, match=r"NOT SHOWN.*c\.pt has no report.*robot-rl classifier report"):
        check_fit(file)
    assert check_fit(file, allowed=True).fitness is Fitness.NOT_SHOWN


def test_a_certificate_is_of_one_classifier(file, tmp_path):
    certify(file, report(Fitness.FIT))
    other = tmp_path / "c.pt"
    other.write_bytes(other.read_bytes())  # the same bytes again: the same classifier
    assert check_fit(read_classifier_file(other)).passed
    replace(classifier(), threshold=0.5).write(other)
    with pytest.raises(UncertifiedError, match="is of another classifier"):
        check_fit(read_classifier_file(other))


@pytest.mark.parametrize("fitness", ["fit", "unproven", "unfit"])
def test_certificates_of_the_revision_before_are_read(file, fitness):
    found = {"classifier": file.sha256, "fitness": fitness, "reasons": ["recall: 0.7"], "episodes": 10}
    certificate_path(file.path).write_text(json.dumps(found, indent=2))
    if fitness == "unfit":
        with pytest.raises(UncertifiedError, match=r"recall: 0\.7"):
            check_fit(file)
    else:
        assert check_fit(file).passed == (fitness == "fit")


def test_a_certificate_that_contradicts_its_conditions_counts_as_none(file):
    certify(file, report(Fitness.UNFIT))
    path = certificate_path(file.path)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"fitness": "fit"}))
    with pytest.raises(UncertifiedError, match="calls itself fit, its conditions say unfit"):
        check_fit(file)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"fitness": "fit"}', '{"fitness": "x", "reasons": []}'])
def test_a_damaged_certificate_counts_as_none(file, content):
    certificate_path(file.path).write_text(content)
    with pytest.raises(UncertifiedError, match="cannot be read"):
        check_fit(file)


def faultless(successes, failures):
    """Figures of a classifier without a fault on so many episodes."""
    sure = Figure(1.0, 1.0, 1.0)
    rate = share(0, failures)
    return {
        "calibrated": sure,
        "precision": share(successes, successes),
        "recall": share(successes, successes),
        "false_positives_per_100_failures": Figure(*(100 * value for value in rate)),
        "near_miss_false_positive_rate": rate,
        "roc_auc": sure,
        "calibration_error": Figure(0.0, 0.0, 0.01),
        "delay_steps": Figure(1.0, 1.0, 2.0),
    }


@pytest.mark.parametrize(("failures", "fitness"), [(380, Fitness.NOT_SHOWN), (381, Fitness.FIT)])
def test_how_many_failures_show_that_fewer_than_one_in_a_hundred_is_a_false_positive(failures, fitness):
    """Wilson's upper bound for 0 of n is z^2 / (n + z^2): at most 1 % from n = 381 on."""
    result = check_conditions(USE, CONDITIONS, faultless(1000, failures))
    assert result.fitness is fitness
    if not result.passed:
        assert ["381 without a fault" in text for text in result.unsure] == [True]


def test_a_late_classifier_is_unfit_however_right_it_is():
    late = {**faultless(1000, 1000), "delay_steps": Figure(6.0, 5.5, 7.0)}
    result = check_conditions(USE, CONDITIONS, late, ["give it a gate"])
    assert (result.fitness, result.causes) == (Fitness.UNFIT, ("give it a gate",))
    assert [text.split(":")[0] for text in result.failed] == ["delay_steps"]
