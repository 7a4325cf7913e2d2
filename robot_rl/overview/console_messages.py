"""What the overview reads of the messages of a console; the rest of them is left alone."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

RECENT = 20
"""Newest episodes in the rate of success."""


class _ConsoleMessage(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ShownJob(_ConsoleMessage):
    """The facts of a job that do not change."""

    kind: str
    task: str
    env_steps: int
    max_steps: int


class ShownHold(_ConsoleMessage):
    """Why the arm holds."""

    name: str
    reason: str


class ShownPhase(_ConsoleMessage):
    """The phase of the job."""

    name: str
    text: str


class ShownEpisode(_ConsoleMessage):
    """The running episode, and where its newest step came from."""

    id: str | None
    step: int
    source: str | None


class ShownDemonstrations(_ConsoleMessage):
    """How many demonstrations there are."""

    count: int
    wanted: int


class ShownResult(_ConsoleMessage):
    """An episode that is over."""

    demonstration: bool
    success: bool | None


class ShownRemark(_ConsoleMessage):
    """A message for the operators."""

    text: str


class ShownState(_ConsoleMessage):
    """What changes often."""

    phase: ShownPhase
    episode: ShownEpisode
    kept: ShownDemonstrations
    health: dict[str, Any]
    holds: list[ShownHold]
    question: str | None
    call: str
    owner: str | None
    ended: Annotated[list[ShownResult], Field(exclude=True)]
    remarks: Annotated[list[ShownRemark], Field(exclude=True)]

    @property
    def emergency(self) -> bool:
        """Whether an emergency stop is on."""
        return any(hold.name == "e-stop" for hold in self.holds)

    @property
    def recent(self) -> tuple[int, int]:
        """Successes among the newest judged episodes, and how many these are."""
        judged = [row.success for row in self.ended if not row.demonstration and row.success is not None][-RECENT:]
        return sum(judged), len(judged)

    @property
    def remark(self) -> str:
        """The newest message for the operators, unless the hold says the same."""
        text = self.remarks[-1].text if self.remarks else ""
        return "" if text in {hold.reason for hold in self.holds} else text
