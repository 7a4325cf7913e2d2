"""A certificate: the verdict of a report on a file, beside that file, read before the file may reward anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from robot_rl.reward.validation.gates import ConditionResult, Fitness, GateResult, not_compared
from robot_rl.system.atomic_file import write_atomically


class CertifiedFile(Protocol):
    """A file that was read once."""

    @property
    def path(self) -> Path:
        """Where it lies."""
        ...

    @property
    def sha256(self) -> str:
        """SHA-256 of its content, in hexadecimal."""
        ...


def certificate_path(file: Path) -> Path:
    """Return the path of the certificate of a file."""
    return file.with_name(file.name + ".report.json")


def write_certificate(file: CertifiedFile, what: str, gate: GateResult, episodes: int) -> Path:
    """Write the certificate of a file, and return its path.

    Args:
        file: The file.
        what: What it is, e.g. `classifier`.
        gate: The verdict.
        episodes: Number of episodes that it rests on.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    found = {
        what: file.sha256,
        "fitness": gate.fitness,
        "conditions": [{"fitness": one.fitness, "text": one.text} for one in gate.conditions],
        "causes": gate.causes,
        "episodes": episodes,
    }
    write_atomically(path := certificate_path(file.path), json.dumps(found, indent=2))
    return path


def check_certificate(file: CertifiedFile, what: str, use: str, cure: str, *, allowed: bool = False) -> GateResult:
    """Return the verdict on a file: fit, or not shown to be fit by its report.

    Args:
        file: The file.
        what: As it was certified.
        use: What it is to be used for.
        cure: Which command reports on it, and how to take the risk.
        allowed: Whether the user takes the risk of any other verdict, which is returned then, too.

    Raises:
        UncertifiedError: if it is unfit, or has no certificate, and the user does not take the risk.
    """
    path = certificate_path(file.path)
    try:
        found = json.loads(path.read_bytes())
        certified, verdict = found[what], _verdict(found, use)
    except FileNotFoundError:
        why = f"{file.path} has no report"
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{path} cannot be read: {error}"
    else:
        if certified == file.sha256:
            return verdict.demand(cure, allowed=allowed, least=Fitness.NOT_SHOWN)
        why = f"{path} is of another {what.replace('_', ' ')}; this one has no report"
    return not_compared(use, why).demand(cure, allowed=allowed)


def _verdict(found: Mapping[str, Any], use: str) -> GateResult:
    """Return the verdict of a certificate; those of older revisions have the reasons without their own fitness."""
    fitness = Fitness(found["fitness"])
    if "conditions" not in found:
        reasons = [str(reason) for reason in found["reasons"]] or ["its report"]
        return GateResult(use, tuple(ConditionResult(fitness, reason) for reason in reasons))
    conditions = tuple(ConditionResult(Fitness(one["fitness"]), str(one["text"])) for one in found["conditions"])
    verdict = GateResult(use, conditions, tuple(str(cause) for cause in found["causes"]))
    if verdict.fitness is not fitness:
        raise ValueError(f"it calls itself {fitness}, its conditions say {verdict.fitness}")
    return verdict
