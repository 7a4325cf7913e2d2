"""The certificate of a classifier: the result of its report, read before it may end episodes."""

from __future__ import annotations

from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.classifier.report import USE, ClassifierReport
from robot_rl.reward.validation.certificate import check_certificate, write_certificate
from robot_rl.reward.validation.gates import GateResult

_WHAT = "classifier"
_CURE = "`robot-rl classifier report` evaluates a classifier; reward.allow_unfit=true takes the risk"


def certify(classifier: ClassifierFile, report: ClassifierReport) -> None:
    """Write the certificate.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    write_certificate(classifier, _WHAT, report.gate, len(report.episodes))


def check_fit(classifier: ClassifierFile, *, allowed: bool = False) -> GateResult:
    """Return the verdict on a classifier that is to end episodes; see `check_certificate`.

    Raises:
        UncertifiedError: if it is unfit, or has no certificate, and the user does not take the risk.
    """
    return check_certificate(classifier, _WHAT, USE, _CURE, allowed=allowed)
