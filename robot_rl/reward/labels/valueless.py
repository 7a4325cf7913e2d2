"""Answers without a value: why they have none, and when a labeller gives nothing else."""

from __future__ import annotations

from collections import Counter

from robot_rl.errors import ValuelessAnswersError
from robot_rl.reward.answer import Answer, Status

MOST_IN_A_ROW = 10
"""Answers without a value in a row after which a labeller stops. If a third of a labeller's answers had none, by
chance, that many in a row would come once in 60,000 answers."""
CURE = (
    "`robot-rl label doctor` shows what the model writes; then change model or prompt, and label under another --name"
)


def reason_of(answer: Answer) -> str:
    """Return why an answer has no value; empty if it has one, or the model was unsure."""
    if answer.status is Status.REFUSED:
        return "the model, or the server's filter, declined to answer"
    return str(answer.details.get("why", "not known")) if answer.status is Status.UNPARSABLE else ""


class ValuelessStreak:
    """The newest answers, as long as they have no value. An unsure answer keeps to the form, so it ends the streak."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()

    def add(self, answer: Answer) -> None:
        """Add an answer."""
        if reason := reason_of(answer):
            self._reasons[reason] += 1
        else:
            self._reasons.clear()

    def check(self) -> None:
        """Check that there are not too many.

        Raises:
            ValuelessAnswersError: if there are.
        """
        if (count := self._reasons.total()) >= MOST_IN_A_ROW:
            reason, _ = self._reasons.most_common(1)[0]
            raise ValuelessAnswersError(
                f"{count} answers in a row have no value, most of them because: {reason}; {CURE}"
            )
