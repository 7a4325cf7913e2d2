"""The certificate of a progress head: the result of its report, read before its progress may shape rewards.

Shaping leaves the best policy as it is, but a head that tells no more than a clock costs robot time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.errors import DataError
from robot_rl.reward.heads.progress_head import ProgressHeadFile, read_progress_head_file
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.certificate import check_certificate, write_certificate
from robot_rl.reward.validation.gates import GATES, GateResult

USE, *_ = GATES[QueryKind.PROGRESS]
_WHAT = "progress_head"
_CURE = (
    "label episodes of known outcome with it (`robot-rl label run --kind progress --set backend=head`), then "
    "`robot-rl label report` evaluates it; reward.allow_unfit=true takes the risk"
)


@dataclass(frozen=True, eq=False)
class ShapingHead(ProgressHeadFile):
    """The file of a progress head that shapes rewards.

    Attributes:
        verdict: Whether it is fit for that.
    """

    verdict: GateResult

    @classmethod
    def of(cls, file: ProgressHeadFile, *, allowed: bool) -> ShapingHead:
        """Return the head with the verdict of its certificate; see `check_shaping`."""
        return cls(file.path, file.content, file.head, check_shaping(file, allowed=allowed))

    def facts(self) -> dict[str, Any]:
        """Return the verdict; JSON values."""
        verdict = self.verdict
        return {"certified": verdict.passed, "fitness": verdict.fitness, "reasons": list(verdict.reasons)}


def certify_head(file: Path, revision: str, gate: GateResult, episodes: int) -> str:
    """Write the certificate of the head that gave labels of progress; return what was done, in a sentence.

    Args:
        file: The head, where it was when it labelled.
        revision: Of the head that gave the labels.
        gate: The verdict of their report.
        episodes: Number of episodes that it rests on.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    try:
        head = read_progress_head_file(file)
    except DataError as error:
        return f"without a certificate for a training, as the head that gave the labels cannot be read: {error}"
    if head.head.revision != revision:
        return f"without a certificate for a training: {file} is another head than the one that gave the labels"
    return f"trainings that are shaped by {file} read this verdict: {write_certificate(head, _WHAT, gate, episodes)}"


def check_shaping(head: ProgressHeadFile, *, allowed: bool = False) -> GateResult:
    """Return the verdict on a head that is to shape rewards; see `check_certificate`.

    Raises:
        UncertifiedError: if it is unfit, or has no certificate, and the user does not take the risk.
    """
    return check_certificate(head, _WHAT, USE, _CURE, allowed=allowed)
