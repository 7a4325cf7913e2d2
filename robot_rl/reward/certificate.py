"""What a report found of a classifier, in a file beside it, so that a training knows whether it may end episodes."""

from __future__ import annotations

import json
from pathlib import Path

from robot_rl.errors import UncertifiedError
from robot_rl.files import write_atomically
from robot_rl.reward.classifier import classifier_fingerprint
from robot_rl.reward.classifier_report import ClassifierReport
from robot_rl.reward.standing import Fitness

USE = "ending episodes"
_CURE = "`robot-rl reward report` judges a classifier; reward.allow_unfit=true takes the risk"


def certificate_path(classifier: Path) -> Path:
    """Where it lies."""
    return classifier.with_name(classifier.name + ".report.json")


def certify(classifier: Path, report: ClassifierReport) -> None:
    """Writes down what was found.

    Raises:
        DataError: if the classifier's file cannot be read.
        RunDirectoryError: if it cannot be written.
    """
    standing = report.standing
    found = {
        "classifier": classifier_fingerprint(classifier),
        "fitness": standing.fitness,
        "reasons": [*standing.failed, *standing.causes, *standing.unsure],
        "episodes": len(report.episodes),
    }
    write_atomically(certificate_path(classifier), json.dumps(found, indent=2))


def check_fit(classifier: Path) -> str | None:
    """A warning if it is not shown that the classifier is fit to end episodes; None if it is.

    Raises:
        DataError: if the classifier's file cannot be read.
        UncertifiedError: if it is unfit, or was never judged.
    """
    path, mark = certificate_path(classifier), classifier_fingerprint(classifier)
    try:
        found = json.loads(path.read_bytes())
        fitness, reasons, judged = (
            Fitness(found["fitness"]),
            [str(reason) for reason in found["reasons"]],
            found["classifier"],
        )
    except FileNotFoundError:
        raise UncertifiedError(USE, [f"{classifier} was never judged"], _CURE) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UncertifiedError(USE, [f"{path} cannot be read: {error}"], _CURE) from error
    if judged != mark:
        raise UncertifiedError(USE, [f"{path} is of another classifier; this one was never judged"], _CURE)
    if fitness is Fitness.UNFIT:
        raise UncertifiedError(USE, reasons, _CURE)
    return None if fitness is Fitness.FIT else f"{classifier} is not shown to be fit: {'; '.join(reasons)}"
