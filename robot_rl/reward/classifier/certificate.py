"""What a report found of a classifier, in a file beside it, so that a training knows whether it may end episodes."""

from __future__ import annotations

import json
from pathlib import Path

from robot_rl.errors import UncertifiedError
from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.classifier.fitness import Fitness
from robot_rl.reward.classifier.report import ClassifierReport
from robot_rl.system.atomic_file import write_atomically

USE = "ending episodes"
_CURE = "`robot-rl reward report` judges a classifier; reward.allow_unfit=true takes the risk"


def certificate_path(classifier: Path) -> Path:
    """Where it lies."""
    return classifier.with_name(classifier.name + ".report.json")


def certify(classifier: ClassifierFile, report: ClassifierReport) -> None:
    """Writes down what was found.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    standing = report.standing
    found = {
        "classifier": classifier.sha256,
        "fitness": standing.fitness,
        "reasons": [*standing.failed, *standing.causes, *standing.unsure],
        "episodes": len(report.episodes),
    }
    write_atomically(certificate_path(classifier.path), json.dumps(found, indent=2))


def check_fit(classifier: ClassifierFile) -> str | None:
    """A warning if it is not shown that the classifier is fit to end episodes; None if it is.

    Raises:
        UncertifiedError: if it is unfit, or was never judged.
    """
    path = certificate_path(classifier.path)
    try:
        found = json.loads(path.read_bytes())
        fitness, reasons, judged = (
            Fitness(found["fitness"]),
            [str(reason) for reason in found["reasons"]],
            found["classifier"],
        )
    except FileNotFoundError:
        raise UncertifiedError(USE, [f"{classifier.path} was never judged"], _CURE) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UncertifiedError(USE, [f"{path} cannot be read: {error}"], _CURE) from error
    if judged != classifier.sha256:
        raise UncertifiedError(USE, [f"{path} is of another classifier; this one was never judged"], _CURE)
    if fitness is Fitness.UNFIT:
        raise UncertifiedError(USE, reasons, _CURE)
    return None if fitness is Fitness.FIT else f"{classifier.path} is not shown to be fit: {'; '.join(reasons)}"
