"""Profiles of the scripted operator: how soon, how often, how long and how well it takes over; and when one is called.

`ideal` is the operator as its task has it. Factors are relative to that. What a profile adds is drawn from a random
stream of its own, so that `ideal` is the same operator, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import RESUMABLE, STRICT, Fraction, NonNegative, NonNegativeReal, PositiveReal
from robot_rl.config.schedule import Rate, Scheduled
from robot_rl.errors import ConfigError

ProfileName = Literal["ideal", "late", "wrong", "timid", "heavy_handed", "lazy", "sporadic", "searching"]
Told = Literal["scene", "estimate"]
Reaction = Annotated[float, Field(ge=0, le=10)]


@dataclass(frozen=True, config=STRICT)
class OperatorProfile:
    """Habits of an operator who takes over from a policy.

    Attributes:
        reaction_s: From the reason to take over to the first action [s].
        wrong: Share of take-overs that lead to a wrong place.
        wrong_by: Distance of the wrong place from the right one, in a drawn horizontal direction [m].
        patience: Factor of the time without progress that it waits before it considers taking over.
        readiness: Factor of the chance to take over where it considers it.
        length: Factor of the time for which it leads.
        speed: Factor of its speed.
        attention: Share of the episodes that it watches.
        minutes: Robot time of the run after which it does not help any more [min]; None: it always does.
        told: What it knows of where things are: the true scene, as eyes would tell it, or what the policy is told.
    """

    reaction_s: Reaction = 0.0
    wrong: Fraction = 0.0
    wrong_by: PositiveReal = 0.02
    patience: PositiveReal = 1.0
    readiness: PositiveReal = 1.0
    length: PositiveReal = 1.0
    speed: PositiveReal = 1.0
    attention: Fraction = 1.0
    minutes: PositiveReal | None = None
    told: Told = "scene"


PROFILES: dict[ProfileName, OperatorProfile] = {
    "ideal": OperatorProfile(),
    "late": OperatorProfile(reaction_s=0.3),
    "wrong": OperatorProfile(wrong=0.3),
    "timid": OperatorProfile(patience=2.0, readiness=0.5, length=0.5, speed=0.6),
    "heavy_handed": OperatorProfile(patience=0.4, readiness=1.6, length=2.0, speed=1.6),
    "lazy": OperatorProfile(minutes=10.0),
    "sporadic": OperatorProfile(attention=0.3),
    "searching": OperatorProfile(told="estimate"),
}


@dataclass(frozen=True, config=STRICT)
class CallConfig:
    """When the operator of a training is called to help, a person or the script; docs/person.md describes the rules."""

    rule: Literal["none", "time", "value", "doubt"] = "none"
    """By which failure is predicted, from the critics and the time. `none`: nobody is called."""
    threshold: Annotated[Rate, Scheduled(ge=0, le=1)] = 0.5
    """Risk from which on the operator is called, of the rule; `robot-rl advisor` measures one for a run. A schedule,
    {0: 0.25, 2000: 0.5} over env steps, linear in between, calls sooner while the critics know little."""
    rest_s: NonNegativeReal = 2.0
    """Time without calls after the operator has handed back, in which the policy gets a chance [s]."""
    only: bool = False
    """The scripted operator takes over where it is called, and nowhere else."""
    per_hour: NonNegative = 20
    """Most calls of a person within an hour; the script comes whenever it is called."""


@dataclass(frozen=True, config=STRICT)
class InterventionConfig:
    """Interventions of the scripted operator while training. Demonstrations follow `told` alone."""

    enabled: Annotated[bool, RESUMABLE] = True
    """Whether it intervenes at all."""
    profile: ProfileName = "ideal"
    """How it does; docs/person.md has the numbers of each profile. The settings below replace single numbers."""
    also: tuple[ProfileName, ...] = ()
    """Further profiles, for a mixture: each episode draws one of all; a name may occur more than once."""
    reaction_s: Reaction | None = None
    """From the reason to take over to the first action [s]. null, here and below: as in the profile."""
    wrong: Fraction | None = None
    """Share of take-overs that lead to a wrong place."""
    wrong_by: PositiveReal | None = None
    """Distance of the wrong place from the right one [m]."""
    patience: PositiveReal | None = None
    """Factor of the time without progress before it considers taking over."""
    readiness: PositiveReal | None = None
    """Factor of the chance to take over where it considers it."""
    length: PositiveReal | None = None
    """Factor of the time for which it leads."""
    speed: PositiveReal | None = None
    """Factor of its speed."""
    attention: Fraction | None = None
    """Share of the episodes that it watches."""
    minutes: PositiveReal | None = None
    """Robot time after which it does not help any more; an episode that it watches already is watched to its end
    [min]."""
    told: Told | None = None
    """What it knows of where things are, in demonstrations too. `scene`: the truth, as eyes would tell it. `estimate`:
    what the policy is told, so that it searches by touch; `peg_hard` alone has such an operator."""

    call: CallConfig = Field(default_factory=CallConfig)

    @property
    def profiles(self) -> tuple[OperatorProfile, ...]:
        """The profiles of the mixture, with the numbers that are set."""
        overrides = {name: value for name in NUMBERS if (value := getattr(self, name)) is not None}
        named = (PROFILES[name] for name in (self.profile, *self.also))
        return tuple(replace(profile, **overrides) for profile in named)

    def drawn(self, seed: int) -> OperatorProfile:
        """Return the profile of the episode with this seed."""
        profiles = self.profiles
        return profiles[int(np.random.default_rng([seed, 9]).integers(len(profiles)))]

    @property
    def knowledge(self) -> Told:
        """What the operator of the run is told, which is one and the same in all profiles of a mixture.

        Raises:
            ConfigError: if it is not.
        """
        first, *others = {profile.told for profile in self.profiles}
        if others:
            raise ConfigError(
                f"intervention.profile={self.profile} with intervention.also=[{', '.join(self.also)}]: some are told "
                "the scene and some the estimate; set intervention.told for all of them"
            )
        return first

    @property
    def as_the_task(self) -> bool:
        """Whether the operator is in all episodes as its task has it."""
        return all(profile == PROFILES["ideal"] for profile in self.profiles)

    def refuse(self, because: str) -> None:
        """Raise if the scripted operator is another than that of the task, where there is none.

        Args:
            because: Who takes over instead, as a clause.

        Raises:
            ConfigError: naming the profile.
        """
        if not self.as_the_task:
            raise ConfigError(
                f"intervention.profile={self.profile} and its numbers are of a scripted operator, but {because}; "
                "leave them out"
            )


NUMBERS = tuple(OperatorProfile.__dataclass_fields__)
