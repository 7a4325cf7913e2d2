"""The certificate of a classifier: the result of its report in a file beside it, read before it may end episodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.classifier.report import USE, ClassifierReport
from robot_rl.reward.validation.gates import ConditionResult, Fitness, GateResult, not_compared
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
        "conditions": [{"fitness": one.fitness, "text": one.text} for one in report.gate.conditions],
        "causes": report.gate.causes,
        "episodes": len(report.episodes),
    }
    write_atomically(certificate_path(classifier.path), json.dumps(found, indent=2))


def check_fit(classifier: ClassifierFile, *, allowed: bool = False) -> GateResult:
    """Return the verdict on a classifier that is to end episodes: fit, or not shown to be fit by its report.

    Args:
        classifier: The classifier.
        allowed: Whether the user takes the risk of any other, which is returned then, too.

    Raises:
        UncertifiedError: if it is unfit, or has no certificate, and the user does not take the risk.
    """
    path = certificate_path(classifier.path)
    try:
        found = json.loads(path.read_bytes())
        certified, verdict = found["classifier"], _verdict(found)
    except FileNotFoundError:
        why = f"{classifier.path} has no report"
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{path} cannot be read: {error}"
    else:
        if certified == classifier.sha256:
            return verdict.demand(_CURE, allowed=allowed, least=Fitness.NOT_SHOWN)
        why = f"{path} is of another classifier; this one has no report"
    return not_compared(USE, why).demand(_CURE, allowed=allowed)


def _verdict(found: Mapping[str, Any]) -> GateResult:
    """Return the verdict of a certificate; those of older revisions have the reasons without their own fitness."""
    fitness = Fitness(found["fitness"])
    if "conditions" not in found:
        reasons = [str(reason) for reason in found["reasons"]] or ["its report"]
        return GateResult(USE, tuple(ConditionResult(fitness, reason) for reason in reasons))
    conditions = tuple(ConditionResult(Fitness(one["fitness"]), str(one["text"])) for one in found["conditions"])
    verdict = GateResult(USE, conditions, tuple(str(cause) for cause in found["causes"]))
    if verdict.fitness is not fitness:
        raise ValueError(f"it calls itself {fitness}, its conditions say {verdict.fitness}")
    return verdict
