"""In which stage an episode is, and what happens when a stage fails: it is tried again, or one goes back.

The last judge of a step. Others decide whether a stage is reached, and whether all is done; it knows neither
classifiers nor persons, nor what a stage is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_rl.data.schema import STAGE_PREFIX
from robot_rl.data.sparse_reward import IS
from robot_rl.env.supervision import OPERATOR_JUDGE
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.spec import ArraySpec

REACHED = "reached_"
"""Beginning of the metrics of the stages that an episode has reached at some time."""
LOST_S = 0.5
"""For how long a lasting stage is not so before it counts as lost [s]: grasps and judges waver."""

Condition = Callable[[Outcome, Mapping[str, np.ndarray], TaskSpec], bool]
"""Returns whether a stage is so after a step, of the outcome so far, the observation, and the facts of the task."""


def judged_by_task(name: str) -> Condition:
    """Return the condition of a stage that the task itself judges."""
    return lambda outcome, observation, spec: outcome.metrics.get(f"{IS}{name}", 0.0) >= 0.5


def judged_by_person(outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> bool:
    """Return whether a person has pressed Success where nobody else had seen one, which would be that of the whole."""
    del observation, spec
    return outcome.success and outcome.judge == OPERATOR_JUDGE and outcome.overruled is not None


def _nothing() -> None:
    return


@dataclass(frozen=True)
class JudgedStage:
    """One of the stages before the success.

    Attributes:
        name: For people.
        holds: Whether it is so after a step.
        by_person: It is reached when a person presses Success, which otherwise ends the episode.
        lasting: It has to be so until the end.
        lasts: Whether a lasting one still is so; None: as `holds`, which may want several steps in a row.
        begin: Called at the start of an episode.
        close: Called when no more are played.
    """

    name: str
    holds: Condition
    by_person: bool = False
    lasting: bool = False
    lasts: Condition | None = None
    begin: Callable[[], None] = _nothing
    close: Callable[[], None] = _nothing


class StageJudge:
    """Follows an episode through its stages.

    A stage that is so is reached, and the next one begins. One that is not reached in time fails; one that
    has to last and does not is lost. Then the episode goes back to the first stage that was lost, or tries the one that
    failed again, and ends as a failure when that has happened too often. A success ends it from any stage.

    Args:
        stages: In their order, at least one.
        steps: Most steps in one of them, and from the last one to the success; 0: any number.
        retries: How often they may fail in an episode.
    """

    def __init__(self, stages: Sequence[JudgedStage], *, steps: int, retries: int) -> None:
        self._stages, self._limit, self._retries = tuple(stages), steps, retries
        flag = ArraySpec((1,), low=0.0, high=1.0, scale=1.0)
        self.observation_specs = {f"{STAGE_PREFIX}{stage.name}": flag for stage in stages}
        self._restart()

    @property
    def by_person(self) -> tuple[str, ...]:
        """Names of the stages that wait for a person."""
        return tuple(stage.name for stage in self._stages if stage.by_person)

    @property
    def stage(self) -> str:
        """Name of the stage that is to be reached; `success` after the last one."""
        return self._stages[self._at].name if self._at < len(self._stages) else "success"

    def observe(self) -> dict[str, np.ndarray]:
        """Return whether each stage is reached, by the keys of `observation_specs`, float32, shape (1,)."""
        return {key: np.array([n < self._at], np.float32) for n, key in enumerate(self.observation_specs)}

    def begin(self) -> None:
        """Start an episode, in its first stage."""
        self._restart()
        for stage in self._stages:
            stage.begin()

    def _restart(self) -> None:
        self._at = self._furthest = self._steps = self._failed = 0
        self._missing = [0] * len(self._stages)  # for how many steps a lasting stage has not been so

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Return the outcome with what its stages make of it: a failure, or a press of Success that meant a stage."""
        if outcome.held:
            return self._reported(outcome)
        self._steps += 1
        if self._at < len(self._stages):
            stage = self._stages[self._at]
            if stage.holds(outcome, observation, spec):
                self._go_to(self._at + 1)
                if stage.by_person:
                    outcome = replace(outcome, success=False, reward=0.0, overruled=None)
        if outcome.success:
            self._go_to(len(self._stages))
        elif outcome.failure is None:
            outcome = self._after_failure(outcome, observation, spec)
        return self._reported(outcome)

    def _after_failure(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Go back or try again where a stage was lost or took too long."""
        patience = max(1, round(LOST_S / spec.control_period))
        lost = None
        for number, stage in enumerate(self._stages[: self._at]):
            if not stage.lasting:
                continue
            so = (stage.lasts or stage.holds)(outcome, observation, spec)
            self._missing[number] = 0 if so else self._missing[number] + 1
            if lost is None and self._missing[number] >= patience:
                lost = number
        late = bool(self._limit) and self._steps >= self._limit
        if lost is None and not late:
            return outcome
        self._failed += 1
        if self._failed > self._retries:
            what = f"lost {self._stages[lost].name}" if lost is not None else f"{self.stage} took too long"
            return replace(outcome, failure=f"stage: {what}")
        self._go_to(self._at if lost is None else lost)
        for stage in self._stages[self._at :]:
            stage.begin()  # what was seen of them before counts no more
        return outcome

    def _go_to(self, number: int) -> None:
        self._at, self._steps = number, 0
        self._furthest = max(self._furthest, number)
        self._missing = [0] * len(self._stages)

    def _reported(self, outcome: Outcome) -> Outcome:
        kept = {name: value for name, value in outcome.metrics.items() if not name.startswith(IS)}
        reached = {f"{REACHED}{stage.name}": float(n < self._furthest) for n, stage in enumerate(self._stages)}
        return replace(outcome, metrics={**kept, **reached, "stage_failures": float(self._failed)})

    def close(self) -> None:
        """Play no more."""
        for stage in self._stages:
            stage.close()
