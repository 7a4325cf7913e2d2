"""Facts of a whole episode, typed: `EpisodeFacts` reads and writes the metadata that are stored with an episode.

On disk metadata are a JSON object. Unknown keys are kept, so that stores of other revisions are
read, copied and written without loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from robot_rl.errors import DataError


class CopiedFrom(TypedDict):
    """The episode that another one is a changed copy of.

    Attributes:
        store: Directory of its store.
        episode_id: Of it.
        fingerprint: Of its file.
        rewards: Name of the overlay that the rewards are taken from; None: as recorded.
    """

    store: str
    episode_id: str
    fingerprint: str
    rewards: str | None


class FactValues(TypedDict, total=False):
    """The keys of an episode's metadata, and the types of their values; every key may be missing."""

    task: str
    seed: int
    demonstration: bool
    T_base_reset: list[float]
    T_base_reset_of_arms: dict[str, list[float]]
    success: bool | None
    failure: str | None
    judge: str
    rewards: str
    actions: str
    overruled: str
    cut: str
    interrupted: bool
    task_success: bool
    outcome: str
    recorded_as: str
    renamed_from: str
    copied_from: CopiedFrom


@dataclass(frozen=True)
class EpisodeFacts:
    """The facts of one episode.

    Attributes:
        metadata: All of them as they are stored, also those without a property here; JSON values.
    """

    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, **facts: Unpack[FactValues]) -> EpisodeFacts:
        """Make facts from typed values."""
        return cls(dict(facts))

    def updated(self, **facts: Unpack[FactValues]) -> EpisodeFacts:
        """Return these facts with some of them replaced; the others are kept."""
        return EpisodeFacts({**self.metadata, **facts})

    @property
    def task(self) -> str:
        """Name of the task; empty if it is not recorded."""
        return str(self.metadata.get("task", ""))

    @property
    def seed(self) -> int | None:
        """Seed of the episode."""
        value = self.metadata.get("seed")
        return None if value is None else int(value)

    @property
    def demonstration(self) -> bool:
        """Whether an operator led the whole episode."""
        return bool(self.metadata.get("demonstration"))

    @property
    def T_base_reset(self) -> tuple[float, ...] | None:
        """Pose of the tcp at the start in the base frame, (x, y, z) [m] and rotation vector [rad].

        Raises:
            DataError: if it is not six numbers.
        """
        value = self.metadata.get("T_base_reset")
        return None if value is None else _six_numbers("T_base_reset", value)

    @property
    def T_base_reset_of_arms(self) -> dict[str, tuple[float, ...]]:
        """The same of each of several arms, in its own base frame, in the order of the arms; empty for one arm.

        Raises:
            DataError: if it is not six numbers for each of two or more names.
        """
        value = self.metadata.get("T_base_reset_of_arms", {})
        if not isinstance(value, Mapping) or len(value) == 1:
            raise DataError(f"T_base_reset_of_arms of an episode is {value!r:.100}; expected a pose for each arm")
        return {str(arm): _six_numbers(f"T_base_reset_of_arms: {arm}", pose) for arm, pose in value.items()}

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of several arms, in the order of the columns of `Episode.arm_sources`; empty for one arm."""
        return tuple(self.T_base_reset_of_arms)

    @property
    def success(self) -> bool | None:
        """Whether the task was done; None if that is not known (yet)."""
        value = self.metadata.get("success")
        return None if value is None else bool(value)

    @property
    def failure(self) -> str | None:
        """Why the episode ended without success."""
        return self._text("failure")

    @property
    def judge(self) -> str | None:
        """Name of the source of the result, if it was not the task."""
        return self._text("judge")

    @property
    def rewards(self) -> str | None:
        """The settings by which its rewards were made; None where there is one way, or none is known."""
        return self._text("rewards")

    @property
    def actions(self) -> str | None:
        """What each entry of an action moved, and how often; None where it is not known."""
        return self._text("actions")

    @property
    def overruled(self) -> str | None:
        """Name of the judge whose result an operator took back."""
        return self._text("overruled")

    @property
    def cut(self) -> str | None:
        """Why an operator, or a hold, ended the episode without a result."""
        return self._text("cut")

    @property
    def interrupted(self) -> bool:
        """Whether the writer, or the robot, was lost before the episode ended."""
        return "interrupted" in self.metadata

    @property
    def task_success(self) -> bool | None:
        """Success by the task itself, where another judge decides."""
        value = self.metadata.get("task_success")
        return None if value is None else bool(value)

    @property
    def copied_from(self) -> CopiedFrom | None:
        """The episode that this one is a changed copy of; None if it was recorded here, or copied byte for byte.

        Raises:
            DataError: if it does not have all facts of such an episode.
        """
        value = self.metadata.get("copied_from")
        if value is None:
            return None
        try:
            text = [value[key] for key in ("store", "episode_id", "fingerprint")]
            rewards = value["rewards"]
            if not all(isinstance(part, str) for part in [*text, rewards or ""]):
                raise TypeError
        except (KeyError, TypeError) as error:
            raise DataError(f"copied_from of an episode is {value!r:.100}; expected store, episode and more") from error
        return CopiedFrom(store=text[0], episode_id=text[1], fingerprint=text[2], rewards=rewards)

    @property
    def outcome(self) -> str:
        """Kind of the result in a data set made for validation, e.g. `near miss`; empty without one."""
        return self._text("outcome") or ""

    def _text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return None if value is None else str(value)


def _six_numbers(what: str, value: Any) -> tuple[float, ...]:
    try:
        pose = tuple(float(element) for element in value)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} of an episode is {value!r}; expected six numbers") from error
    if len(pose) != 6:
        raise DataError(f"{what} of an episode has {len(pose)} numbers; expected six")
    return pose
