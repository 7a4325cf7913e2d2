"""The one description of recorded robot data. Everybody imports it; nobody else writes a transition dict.

A `Step` is what happened in one control period. An `Episode` is columns of T steps plus the observation after the last
one, so that each frame is stored once. Rewards, terminations and time-outs are recorded as they were; n-step returns
and discounts are computed when sampling and never stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Unpack

import numpy as np

from robot_rl.data.episode_facts import EpisodeFacts, FactValues
from robot_rl.errors import DataError, EpisodeIdError

SCHEMA_VERSION, ARMS_VERSION = 2, 3
"""Versions that are written, of one arm and of several. Version 1 had no `action_base`; 3 has `arm_sources` besides."""
READABLE_VERSIONS = (1, SCHEMA_VERSION, ARMS_VERSION)
STATE_PREFIX, IMAGE_PREFIX = "state/", "images/"
"""Prefixes of the keys of an observation: vectors in SI units, and frames of a camera."""

TASK_SUCCESS = "task_success"
"""Metric of a step: success by the task itself, where another judge decides; see `EpisodeFacts.task_success`."""
CLASSIFIER_PROBABILITY = "classifier_probability"
"""Metric of a step: how probable a classifier finds success. `TASK_SUCCESS` beside it is 1 if the task itself has seen
a success in this episode, which is the truth in simulation; a robot's task sees none."""
LABEL_SOURCE = "label"
"""Source of rewards that are given by a label of the whole episode, which comes after its end."""

BASE_ACTION = "state/base_action"
"""Key under which policies observe what their base proposes; recorded apart, as `action_base`."""

STAGE_PREFIX = "state/reached_"
"""Before the name of a stage in the key under which is observed whether it is reached, 1 or 0, shape (1,)."""

LONGEST_ID = 200

Observation = Mapping[str, np.ndarray]
"""`state/<what>` vectors in SI units and `images/<camera>` uint8 frames."""


def check_id(episode_id: object) -> None:
    """Check that something may be the id of an episode; files of exports and reports are named by it.

    Raises:
        EpisodeIdError: with what an id is.
    """
    text = episode_id if isinstance(episode_id, str) else ""
    if not 0 < len(text) <= LONGEST_ID or not text.isprintable() or set("/\\") & set(text) or text.startswith("."):
        raise EpisodeIdError(
            f"episode_id must be 1 to {LONGEST_ID} printable characters without slashes, and not begin with a dot, "
            f"not {episode_id!r:.50}"
        )


class Source(IntEnum):
    """Source of the executed action."""

    POLICY = 0
    HUMAN = 1
    SCRIPT = 2
    HOLD = 3
    """Nobody: the policy was not in control, and who was commanded nothing, or the arm was being held."""


OPERATOR_SOURCES = (Source.HUMAN, Source.SCRIPT)
"""Steps of these are somebody's commands, to be learned from as demonstrations are."""


def in_control(source: np.ndarray, arm_sources: np.ndarray | None) -> np.ndarray:
    """Return who was in control of each step, which differs from `source` only with several arms.

    While an operator at rest keeps one arm and the policy leads another one, nobody has handed back: that is a `HOLD`.

    Args:
        source: Of the steps, shape (T,).
        arm_sources: Of each arm, shape (T, arms); None for one arm.
    """
    if arm_sources is None:
        return source
    at_rest = (source == Source.POLICY) & (arm_sources == Source.HOLD).any(axis=-1)
    return np.where(at_rest, Source.HOLD, source).astype(source.dtype)


FASTEST = 1e4
"""Largest rate of steps, or of frames, that is believed [Hz]."""


@dataclass(frozen=True, eq=False)
class Step:
    """One control period.

    Attributes:
        observation: What was known when the action was chosen.
        action: What was executed, in [-1, 1]. Shape (n,).
        action_policy: What the policy wanted; equals `action` unless someone else was in control.
        source: Who was in control.
        reward: Reward of this step.
        reward_source: Who gave it, e.g. `"task"`.
        terminated: The episode ended here by success or failure; nothing follows, so nothing is bootstrapped.
        truncated: The episode was cut here, e.g. by the step limit; the value of what would follow still counts.
        stamp_obs: When the observation was measured [ns].
        stamp_action: When the command was sent [ns].
        episode_id: Which episode.
        index: Position in the episode, from 0.
        action_base: What the base policy proposed, shape (n,); None without one. What the policy wanted beyond it, the
            residual, is `action_policy - action_base`.
        arm_sources: Of several arms, who was in control of each, a `Source`, int8, shape (arms,); None for one arm.
            `source` is then the operator if they led any arm, else the policy if it led any.
    """

    observation: Observation
    action: np.ndarray
    action_policy: np.ndarray
    source: Source
    reward: float
    reward_source: str
    terminated: bool
    truncated: bool
    stamp_obs: int
    stamp_action: int
    episode_id: str
    index: int
    action_base: np.ndarray | None = None
    arm_sources: np.ndarray | None = None

    @property
    def undecided(self) -> bool:
        """Whether this is the last step of an episode that a label has yet to judge: its reward is not known."""
        return self.truncated and self.reward_source == LABEL_SOURCE

    @property
    def control(self) -> Source:
        """Who was in control, see `in_control`."""
        return Source(int(in_control(np.array(self.source, np.int8), self.arm_sources)))


@dataclass(frozen=True, eq=False)
class Episode:
    """Columns of T steps and the observation after the last.

    Attributes:
        episode_id: Unique within a store.
        observations: Each of shape (T + 1, ...): row t is what step t saw, row T is what the last step led to.
        action: Executed, shape (T, n), float32.
        action_policy: Wanted by the policy, shape (T, n), float32.
        source: `Source` per step, shape (T,), int8.
        reward: Shape (T,), float32.
        terminated: Shape (T,), bool. True at most in the last row.
        truncated: Shape (T,), bool. True at most in the last row.
        stamp_obs: [ns], shape (T + 1,), int64.
        stamp_action: [ns], shape (T,), int64.
        reward_source: Who gave the rewards.
        metadata: Facts of the whole episode as they are stored, JSON values only; `facts` reads them typed.
        schema_version: Version of this layout.
        action_base: What the base policy proposed after each observation, shape (T + 1, n), float32; None without one.
        arm_sources: `Source` of each of several arms per step, shape (T, arms), int8, in the order in which
            `EpisodeFacts.arms` names them; None for one arm.
    """

    episode_id: str
    observations: Mapping[str, np.ndarray]
    action: np.ndarray
    action_policy: np.ndarray
    source: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    stamp_obs: np.ndarray
    stamp_action: np.ndarray
    reward_source: str = "task"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION
    action_base: np.ndarray | None = None
    arm_sources: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of steps T."""
        return len(self.action)

    @property
    def facts(self) -> EpisodeFacts:
        """The metadata, typed."""
        return EpisodeFacts(self.metadata)

    @property
    def control(self) -> np.ndarray:
        """Who was in control of each step, see `in_control`."""
        return in_control(self.source, self.arm_sources)

    @property
    def ended(self) -> bool:
        """Whether its last step terminated or truncated it. A store takes no other; replay closes one without."""
        return bool(self.terminated[-1] or self.truncated[-1])

    def observation(self, row: int) -> Observation:
        """Return the observation before step `row`; for row T, the one after the last step."""
        return {key: column[row] for key, column in self.observations.items()}

    def seen(self, row: int) -> Observation:
        """Return what a policy observed before step `row`: the observation and, with a base, its proposal."""
        return {key: column[row] for key, column in self.observed.items()}

    @property
    def observed(self) -> Mapping[str, np.ndarray]:
        """What a policy observed: the observations and, with a base, its proposals as `BASE_ACTION`."""
        return self.observations if self.action_base is None else {**self.observations, BASE_ACTION: self.action_base}

    def step(self, row: int) -> Step:
        """Return the step of that row."""
        return Step(
            observation=self.observation(row),
            action=self.action[row],
            action_policy=self.action_policy[row],
            source=Source(int(self.source[row])),
            reward=float(self.reward[row]),
            reward_source=self.reward_source,
            terminated=bool(self.terminated[row]),
            truncated=bool(self.truncated[row]),
            stamp_obs=int(self.stamp_obs[row]),
            stamp_action=int(self.stamp_action[row]),
            episode_id=self.episode_id,
            index=row,
            action_base=None if self.action_base is None else self.action_base[row],
            arm_sources=None if self.arm_sources is None else self.arm_sources[row],
        )

    def __post_init__(self) -> None:
        """Check the invariants.

        Raises:
            DataError: naming the episode, the column and what is wrong with it.
        """
        if self.schema_version not in READABLE_VERSIONS:
            readable = f"{', '.join(map(str, READABLE_VERSIONS[:-1]))} and {READABLE_VERSIONS[-1]}"
            raise DataError(
                f"episode {self.episode_id}: schema version {self.schema_version}, this program reads {readable}"
            )
        check_id(self.episode_id)
        steps = len(self)
        if steps == 0:
            raise DataError(f"episode {self.episode_id}: has no steps")
        for name in STEP_COLUMNS:
            if len(getattr(self, name)) != steps:
                raise DataError(
                    f"episode {self.episode_id}: column {name} has {len(getattr(self, name))} rows, expected {steps}"
                )
        proposals = {} if self.action_base is None else {"action_base": self.action_base}
        for name, column in {**self.observations, "stamp_obs": self.stamp_obs, **proposals}.items():
            if len(column) != steps + 1:
                raise DataError(f"episode {self.episode_id}: {name} has {len(column)} rows, expected {steps + 1}")
        for name in ("terminated", "truncated"):
            if np.any(getattr(self, name)[:-1]):
                raise DataError(f"episode {self.episode_id}: {name} before the last step")
        if self.terminated[-1] and self.truncated[-1]:
            raise DataError(f"episode {self.episode_id}: ends both terminated and truncated; it can be only one")
        for name in ("action", "action_policy", "reward"):
            if not np.isfinite(getattr(self, name)).all():
                raise DataError(f"episode {self.episode_id}: {name} has a NaN or an infinity")
        if self.arm_sources is not None:
            self._check_arms(self.arm_sources)
        if self.action_base is None:
            return
        if self.action_base.shape[1:] != self.action.shape[1:] or not np.isfinite(self.action_base).all():
            raise DataError(
                f"episode {self.episode_id}: action_base of shape {self.action_base.shape} for actions of shape "
                f"{self.action.shape}, or not finite"
            )

    def _check_arms(self, sources: np.ndarray) -> None:
        what = f"episode {self.episode_id}: arm_sources"
        if self.schema_version < ARMS_VERSION:
            raise DataError(
                f"{what} in schema version {self.schema_version}; {ARMS_VERSION} is the first that has them"
            )
        if sources.ndim != 2 or len(sources) != len(self) or sources.shape[1] < 2:
            raise DataError(f"{what} has shape {sources.shape}, expected ({len(self)}, number of arms, 2 or more)")
        if not np.isin(sources, list(Source)).all():
            raise DataError(
                f"{what} has {sorted(set(sources.ravel().tolist()) - set(Source))}, which are no sources of an action"
            )


BASE_COLUMN = "action_base"
"""Column with one row per observation, as `stamp_obs`, in episodes that were played with a base policy."""
STEP_COLUMNS = ("action", "action_policy", "source", "reward", "terminated", "truncated", "stamp_action")
"""Columns with one row per step, in the order in which they are written."""
ARMS_COLUMN = "arm_sources"
"""One more such column, in episodes of several arms."""


class EpisodeBuilder:
    """Collect steps into an `Episode`."""

    def __init__(self, episode_id: str, metadata: Mapping[str, Any] | None = None) -> None:
        self.episode_id = episode_id
        self.metadata: dict[str, Any] = dict(metadata or {})
        self._steps: list[Step] = []

    def __len__(self) -> int:
        """Return the number of steps so far."""
        return len(self._steps)

    def add(self, step: Step) -> None:
        """Append one step.

        Raises:
            DataError: if the step belongs to another episode or position.
        """
        if step.episode_id != self.episode_id or step.index != len(self._steps):
            raise DataError(
                f"step {step.index} of {step.episode_id} cannot follow {len(self._steps)} steps of {self.episode_id}"
            )
        self._steps.append(step)

    def note(self, **facts: Unpack[FactValues]) -> None:
        """Add facts of the whole episode to its metadata."""
        self.metadata.update(facts)

    def cut(self) -> None:
        """Truncate the episode after the newest step."""
        self._steps[-1] = replace(self._steps[-1], truncated=True)

    def finish(self, final_observation: Observation, final_stamp: int, final_base: np.ndarray | None = None) -> Episode:
        """Return the episode, given the observation [its stamp, ns, and what the base proposes] after the last step."""
        steps = self._steps
        proposals = [step.action_base for step in steps] + [final_base]
        known = [row for row in proposals if row is not None]
        if known and len(known) != len(proposals):
            raise DataError(f"episode {self.episode_id}: the base proposed {len(known)} of {len(proposals)} actions")
        arms = [step.arm_sources for step in steps if step.arm_sources is not None]
        if arms and len(arms) != len(steps):
            raise DataError(f"episode {self.episode_id}: {len(arms)} of {len(steps)} steps are of several arms")
        rows = [*(s.observation for s in steps), final_observation]
        return Episode(
            episode_id=self.episode_id,
            observations={key: np.stack([row[key] for row in rows]) for key in sorted(final_observation)},
            action=np.stack([s.action for s in steps]).astype(np.float32),
            action_policy=np.stack([s.action_policy for s in steps]).astype(np.float32),
            source=np.array([s.source for s in steps], np.int8),
            reward=np.array([s.reward for s in steps], np.float32),
            terminated=np.array([s.terminated for s in steps], bool),
            truncated=np.array([s.truncated for s in steps], bool),
            stamp_obs=np.array([*(s.stamp_obs for s in steps), final_stamp], np.int64),
            stamp_action=np.array([s.stamp_action for s in steps], np.int64),
            reward_source=steps[-1].reward_source if steps else "task",  # who judged at the end judged the episode
            metadata=self.metadata,
            schema_version=ARMS_VERSION if arms else SCHEMA_VERSION,
            action_base=np.stack(known).astype(np.float32) if known else None,
            arm_sources=np.stack(arms).astype(np.int8) if arms else None,
        )
