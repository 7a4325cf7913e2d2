"""The certificate of a classifier: the result of its report in a file beside it, read before it may end episodes."""

from __future__ import annotations

import json
from pathlib import Path

from robot_rl.errors import UncertifiedError
from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.classifier.report import USE, ClassifierReport
from robot_rl.reward.validation.gates import Fitness
from robot_rl.system.atomic_file import write_atomically

_CURE = "`robot-rl classifier report` evaluates a classifier; reward.allow_unfit=true takes the risk"


def certificate_path(classifier: Path) -> Path:
    """Return the path of the certificate of a classifier."""
    return classifier.with_name(classifier.name + ".report.json")


def certify(classifier: ClassifierFile, report: ClassifierReport) -> None:
    """Write the certificate.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    found = {
        "classifier": classifier.sha256,
        "fitness": report.gate.fitness,
        "reasons": [*report.gate.failed, *report.gate.causes, *report.gate.unsure],
        "episodes": len(report.episodes),
    }
    write_atomically(certificate_path(classifier.path), json.dumps(found, indent=2))


def check_fit(classifier: ClassifierFile) -> str | None:
    """Return a warning if the classifier is not shown to be fit to end episodes; None if it is fit.

    Raises:
        UncertifiedError: if it is unfit, or has no certificate.
    """
    path = certificate_path(classifier.path)
    try:
        found = json.loads(path.read_bytes())
        fitness, reasons, certified = (
            Fitness(found["fitness"]),
            [str(reason) for reason in found["reasons"]],
            found["classifier"],
        )
    except FileNotFoundError:
        raise UncertifiedError(USE, [f"{classifier.path} has no report"], _CURE) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UncertifiedError(USE, [f"{path} cannot be read: {error}"], _CURE) from error
    if certified != classifier.sha256:
        raise UncertifiedError(USE, [f"{path} is of another classifier; this one has no report"], _CURE)
    if fitness is Fitness.UNFIT:
        raise UncertifiedError(USE, reasons, _CURE)
    return None if fitness is Fitness.FIT else f"{classifier.path} is not shown to be fit: {'; '.join(reasons)}"
