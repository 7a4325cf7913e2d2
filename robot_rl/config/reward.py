"""Settings of the reward: who judges, the labels that it comes from, and how it is shaped."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import (
    RESUMABLE,
    STRICT,
    Fraction,
    NonNegative,
    NonNegativeReal,
    Positive,
    PositiveReal,
    Resumable,
)
from robot_rl.errors import ConfigError, UnknownNameError

SUCCESS = "success"
"""What follows the last stage."""


@dataclass(frozen=True, config=STRICT)
class BudgetConfig:
    """Limits of one run of the labeller, which stops before it would exceed one; 0 sets no limit."""

    calls: NonNegative = 0
    """Requests to the server, repeated ones included."""
    tokens: NonNegative = 0
    """Tokens of prompts and replies together."""
    money: NonNegativeReal = 0.0
    """In the currency of the prices."""
    seconds: NonNegativeReal = 0.0
    """Wall time [s]."""


@dataclass(frozen=True, config=STRICT)
class ShapingConfig:
    """Rewards shaped by progress, R + gamma Phi(s') - Phi(s) (Ng 1999), which leaves the optimal policy as it is."""

    head: Annotated[
        str, Resumable("to another file of the same content", lambda old, new: bool(old.head and new.head))
    ] = ""
    """File of a progress head, from `robot-rl label train --kind progress`, with the verdict of `robot-rl label report`
    beside it. Empty: rewards are not shaped."""
    scale: PositiveReal = 1.0
    """Phi of a task that looks done, in units of the reward; a success is worth 1. Phi is this times the progress."""


_CLASSIFIER_FILE = "of a classifier, to another file of the same content"


@dataclass(frozen=True, config=STRICT)
class PreferencesConfig:
    """For `kind=preferences`: a reward is learned from answers about pairs while the run goes on (Wang 2024)."""

    episodes: Positive = 5
    """Online episodes from one session of queries to the next."""
    pairs: Positive = 40
    """Pairs of a session, each queried in both orders."""
    candidates: Positive = 10
    """Pairs drawn at random for each pair that is queried: those are taken about which the members of the ensemble
    disagree most (Lee 2021). 1: as they are drawn."""
    features: Literal["state", "frames"] = "state"
    """What of a moment decides its reward: proprioception and the task's estimates, or the frame as the bundled encoder
    sees it."""
    updates: Positive = 2000
    """Gradient steps of each fit."""


def _checked_order(order: tuple[str, ...]) -> tuple[str, ...]:
    """Return stages of which each has a name of its own and a judge."""
    names = [entry.partition("=")[0] for entry in order]
    for entry in order:
        name, _, judge = entry.partition("=")
        kind, _, path = judge.partition(":")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name == SUCCESS:
            raise ValueError(f"{entry!r}: the name of a stage is a word of a-z, 0-9 and _, and not {SUCCESS}")
        if not judge:
            raise ValueError(f"stage {name} has no judge; valid: {name}=task, {name}=person, {name}=classifier:FILE")
        if (kind, bool(path)) not in (("task", False), ("person", False), ("classifier", True)):
            raise ValueError(f"stage {name}: {judge!r} is no judge; valid: task, person, classifier:FILE")
    if len(set(names)) < len(names):
        raise ValueError(f"two stages have the same name: {', '.join(names)}")
    return order


@dataclass(frozen=True, config=STRICT)
class StagesConfig:
    """Stages on the way to success: what each is worth, and what happens when one fails; see docs/tasks.md."""

    order: Annotated[tuple[str, ...], AfterValidator(_checked_order)] = ()
    """Stages before the success, each `NAME=JUDGE`, e.g. `[lifted=task, aligned=classifier:aligned.pt]`. `task`: the
    task itself, in simulation; `classifier:FILE`: as of `reward.path`; `person`: who presses Success. Whoever judges
    episodes, `reward.kind`, judges the success after them. Empty: there are none."""
    shaping: Fraction = 0.5
    """Phi where all of them are reached, in equal parts; a success is worth 1. Rewards are shaped by it as by a head's
    progress, so that what is best stays best. 0: stages are observed, and not rewarded."""
    lasting: tuple[str, ...] = ()
    """Names of stages that have to last until the end, such as a grasp: lost for half a second, it is done again."""
    steps: NonNegative = 0
    """Most control steps in one stage; then it has failed, and is tried again. 0: as many as the episode has."""
    retries: NonNegative = 2
    """How often stages may fail or be lost in an episode before it ends as a failure."""

    def check(self) -> None:
        """Check what the settings say of each other.

        Raises:
            UnknownNameError: if a lasting stage is none of them.
            ConfigError: if it is judged by a person, or something is set of stages that are not there.
        """
        if not self.order and (self.lasting or self.steps):
            one = "lasting" if self.lasting else "steps"
            raise ConfigError(f"reward.stages.{one} without reward.stages.order: there are no stages; set that, too")
        for name in self.lasting:
            if name not in self.names:
                raise UnknownNameError("lasting stage", name, self.names)
            if dict(self.judges)[name] == "person":
                raise ConfigError(f"reward.stages.lasting={name}: a person judges it once; give it another judge")

    @property
    def judges(self) -> tuple[tuple[str, str], ...]:
        """Name and judge of each."""
        return tuple((name, judge) for name, _, judge in (entry.partition("=") for entry in self.order))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all."""
        return tuple(name for name, _ in self.judges)

    @property
    def classifiers(self) -> tuple[tuple[str, str], ...]:
        """Name and file of those that a classifier judges."""
        mark = "classifier:"
        return tuple((name, judge.removeprefix(mark)) for name, judge in self.judges if judge.startswith(mark))


@dataclass(frozen=True, config=STRICT)
class RewardConfig:
    """The source of success and reward, while training and in evaluation."""

    kind: Literal["task", "classifier", "labels", "preferences"] = "task"
    """`task`: the task itself, which in simulation knows the truth. `classifier`: frames, at every step; see
    `robot-rl classifier`. `labels`: a label of the whole episode, which comes after its end; see `robot-rl label`.
    `preferences`: a reward of each step, learned from labels of pairs while the run goes on; see `preferences`."""
    path: Annotated[str, Resumable(_CLASSIFIER_FILE, lambda old, new: old.kind == "classifier")] = ""
    """`classifier`: its file, from `robot-rl classifier train`. Otherwise a store, or a run, with labels of the same
    labeller, calibrated and validated there."""
    labels: str = "success"
    """`labels`, `preferences`: name of these labels. The labeller has the settings with which they were made."""
    truth: Annotated[str, RESUMABLE] = ""
    """`labels`, `preferences`: CSV file of `episode_id,success` by a person who looked at episodes of that store; it
    counts instead of the recorded outcomes when the labels are judged, as for `label report --truth`."""
    unlabelled: Literal["masked", "failure"] = "masked"
    """`labels`: how the end of an episode counts that has no label (yet). `masked`: nothing is learned from its last
    step. `failure`: it was no success, until there is a label."""
    episode_steps: NonNegative = 0
    """`labels`, `preferences`: step limit of labelled episodes, which no success ends: half as many again as a
    demonstration takes leaves time to succeed, and the robot does not wait for long. 0: the limit of the task, which
    none exceeds."""
    find_onset: bool = False
    """`labels`: find by bisection since when an episode has been a success: log2(steps) queries more. It is then
    learned as if it had ended there, and not at the step limit."""
    allow_uncalibrated: bool = False
    """`labels`, `preferences`: accept labels that are unfit for it, or not shown to be fit. The run records it."""
    budget: Annotated[BudgetConfig, RESUMABLE] = Field(default_factory=BudgetConfig)
    """`labels`, `preferences`: limits of labelling while the run lasts, anew after each resuming."""
    preferences: PreferencesConfig = Field(default_factory=PreferencesConfig)
    """`preferences`: how many pairs, when, and what is learned from them."""
    shaping: ShapingConfig = Field(default_factory=ShapingConfig)
    """With any kind: a reward for progress while learning."""
    stages: StagesConfig = Field(default_factory=StagesConfig)
    """With `task` and `classifier`: stages on the way to success."""
    allow_unfit: bool = False
    """Accept a classifier that `robot-rl classifier report` found unfit to end episodes, or a head of `shaping` that
    `robot-rl label report` found unfit to shape rewards, or one without a report. The run records it."""
    overrule_s: Annotated[float, Field(ge=0, le=30)] = 2.0
    """With an operator beside the training: time in which the operator can overrule a success that only the classifier
    saw, before it counts [s]."""
