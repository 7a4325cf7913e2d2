"""What is remembered for learning: a ring of rows, each observation stored once.

An episode of T steps takes T + 1 consecutive rows. Row t holds what step t saw, did and got; row T holds only the final
observation. A training transition is a view on these rows: next observations, n-step sums and discounts are computed
when sampling and never stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from robot_rl.data.packing import ObservationPacker
from robot_rl.data.schema import Episode, Source
from robot_rl.errors import DataError


class Sample(NamedTuple):
    """Transitions for learning, float32. A batch dimension (count,) or (minibatches, batch size) comes first.

    Attributes:
        observation: Packed observations at step t - age for each of the H ages of the history, (..., H * state_size).
        action: Executed at step t, (..., action_size).
        reward: Sum of `discount ** k * reward[t + k]` over the m <= n_step steps of the window, (...).
        discount: `discount ** m`, or 0 where the window ended in termination, (...).
        next_observation: As `observation`, at step t + m.
    """

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    next_observation: np.ndarray


class _SlotQueue:
    """First in, first out, with O(1) access by rank: which rows can be sampled, oldest first."""

    def __init__(self, capacity: int) -> None:
        self._slots = np.zeros(capacity, np.int64)
        self._start = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, slot: int) -> None:
        self._slots[(self._start + self._count) % len(self._slots)] = slot
        self._count += 1

    def drop(self, count: int) -> None:
        """Forgets the `count` oldest."""
        self._start = (self._start + count) % len(self._slots)
        self._count -= count

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """Slots of the given ranks, 0 the oldest."""
        slots: np.ndarray = self._slots[(self._start + ranks) % len(self._slots)]
        return slots

    def fill(self, slots: np.ndarray) -> None:
        """Holds exactly `slots`, oldest first."""
        self._start, self._count = 0, len(slots)
        self._slots[: len(slots)] = slots


class ReplayBuffer:
    """Ring of rows over episodes, sampled with n-step returns.

    A window of up to n steps from step t ends early at termination (nothing is bootstrapped), at truncation (bootstraps
    from the episode's own last observation), at the newest row of an unfinished episode, and where control changes
    hands (bootstraps from the observation at which it did). Transitions can be sampled as soon as they are appended.
    When the ring is full the oldest whole episodes go. Steps that the policy did not choose are also indexed apart, so
    that interventions count as demonstrations without being stored twice.

    Args:
        capacity: Rows, each one observation; an episode of T steps takes T + 1.
        state_size: Elements of a packed observation.
        action_size: Elements of an action.
    """

    def __init__(self, capacity: int, state_size: int, action_size: int) -> None:
        if capacity < 2:
            raise DataError(f"replay capacity is {capacity} rows; the shortest episode takes 2")
        self.capacity, self.state_size, self.action_size = capacity, state_size, action_size
        self._columns = {
            "state": np.zeros((capacity, state_size), np.float32),
            "action": np.zeros((capacity, action_size), np.float32),
            "reward": np.zeros(capacity, np.float32),
            "terminated": np.zeros(capacity, bool),
            "source": np.zeros(capacity, np.int8),
            "index": np.zeros(capacity, np.int64),  # position in the episode
            "run_offset": np.zeros(capacity, np.int64),  # steps since control last changed hands
            "run_length": np.zeros(capacity, np.int64),  # at the first row of a run: its steps so far
        }
        self._all = _SlotQueue(capacity)
        self._operator = _SlotQueue(capacity)
        self._episode_rows: deque[int] = deque()  # rows of each episode, oldest first
        self._first = 0  # slot of the oldest row
        self._rows = 0  # rows in use
        self._open = False  # whether the newest episode is unfinished

    @classmethod
    def from_episodes(cls, episodes: Iterable[Episode], packer: ObservationPacker, action_size: int) -> Self:
        """A buffer just large enough for these episodes, e.g. demonstrations, which are never dropped."""
        kept = list(episodes)
        buffer = cls(max(2, sum(len(episode) + 1 for episode in kept)), packer.size, action_size)
        for episode in kept:
            buffer.add_episode(episode, packer)
        return buffer

    def __len__(self) -> int:
        """Transitions that can be sampled."""
        return len(self._all)

    @property
    def operator_count(self) -> int:
        """Transitions whose action was not chosen by the policy."""
        return len(self._operator)

    def begin(self, state: np.ndarray) -> None:
        """Starts an episode; one that is unfinished is closed as truncated where it stands.

        Args:
            state: Its first packed observation, shape (state_size,).

        Raises:
            DataError: if the shape is wrong or a value is not finite.
        """
        state = self._checked("state", state, self.state_size)
        self._close()
        self._add_row(state, index=0, episode_rows=0)
        self._episode_rows.append(1)
        self._open = True

    def append(
        self,
        action: np.ndarray,
        reward: float,
        terminated: bool,
        truncated: bool,
        source: int,
        next_state: np.ndarray,
    ) -> None:
        """Adds one step to the unfinished episode.

        Args:
            action: Executed action, shape (action_size,).
            reward: Reward of the step.
            terminated: Success or failure: nothing follows.
            truncated: Cut here: what would follow still counts.
            source: Who chose the action, a `Source`.
            next_state: Packed observation that the step led to, shape (state_size,).

        Raises:
            DataError: if no episode was begun, the episode outgrows the ring, or a value has a wrong shape or is not
                finite. Nothing is stored then.
        """
        if not self._open:
            raise DataError("append without begin: the last episode has ended; call begin with the first observation")
        if terminated and truncated:
            raise DataError("a step both terminated and truncated; it can be only one")
        action = self._checked("action", action, self.action_size)
        next_state = self._checked("state", next_state, self.state_size)
        if not np.isfinite(reward):
            raise DataError(f"replay: reward is {reward}")
        columns = self._columns
        rows = self._episode_rows[-1]
        slot = (self._first + self._rows - 1) % self.capacity  # before rows move on; slots of live rows never change
        self._add_row(next_state, index=rows, episode_rows=rows)
        self._episode_rows[-1] += 1
        columns["action"][slot] = action
        columns["reward"][slot] = reward
        columns["terminated"][slot] = terminated
        columns["source"][slot] = source
        previous = (slot - 1) % self.capacity
        same_hands = rows > 1 and columns["source"][previous] == source
        offset = int(columns["run_offset"][previous]) + 1 if same_hands else 0
        columns["run_offset"][slot] = offset
        columns["run_length"][(slot - offset) % self.capacity] = offset + 1
        self._all.push(slot)
        if source != Source.POLICY:
            self._operator.push(slot)
        self._open = not (terminated or truncated)

    def add_episode(self, episode: Episode, packer: ObservationPacker) -> None:
        """Adds a whole episode; if its last step neither terminated nor truncated, it is closed as truncated.

        Raises:
            DataError: if it is longer than the ring, or its observations or actions are not finite or of another size;
                nothing is stored then.
            SpecError: if its observations do not fit the packer.
        """
        if len(episode) + 1 > self.capacity:
            raise DataError(f"episode {episode.episode_id}: {self._too_long(len(episode) + 1)}")
        states = packer.pack_rows(episode.observations)
        for what, values, size in (("state", states, self.state_size), ("action", episode.action, self.action_size)):
            if values.shape[1:] != (size,):
                raise DataError(f"episode {episode.episode_id}: {what} rows of {values.shape[1:]}, expected {(size,)}")
            if not np.isfinite(values).all():
                raise DataError(f"episode {episode.episode_id}: {what} has a NaN or an infinity")
        self.begin(states[0])
        for t in range(len(episode)):
            self.append(
                episode.action[t],
                float(episode.reward[t]),
                bool(episode.terminated[t]),
                bool(episode.truncated[t]),
                int(episode.source[t]),
                states[t + 1],
            )
        self._close()

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
        *,
        n_step: int,
        discount: float,
        history: tuple[int, ...],
        operator_only: bool = False,
    ) -> Sample:
        """Transitions drawn uniformly with replacement.

        Args:
            count: How many.
            rng: The only source of randomness.
            n_step: Most steps in a window.
            discount: Per step.
            history: Ages [steps] of the observations to stack; before the first one, the first is repeated.
            operator_only: Draw only from steps that the policy did not choose.

        Raises:
            DataError: if there is nothing to draw from.
        """
        size = self.operator_count if operator_only else len(self)
        if size == 0:
            raise DataError(f"replay has no {'operator ' if operator_only else ''}transitions to sample")
        ranks = rng.integers(size, size=count)
        return self.gather(ranks, n_step=n_step, discount=discount, history=history, operator_only=operator_only)

    def gather(
        self, ranks: np.ndarray, *, n_step: int, discount: float, history: tuple[int, ...], operator_only: bool = False
    ) -> Sample:
        """The transitions of the given ranks, 0 the oldest, shape (count,); see `sample`."""
        columns, capacity = self._columns, self.capacity
        slots = (self._operator if operator_only else self._all).at(ranks)
        offset = columns["run_offset"][slots]
        left = columns["run_length"][(slots - offset) % capacity] - offset  # steps up to where control changes
        steps = np.minimum(left, n_step)

        powers = (discount ** np.arange(n_step + 1)).astype(np.float32)
        ahead = np.arange(n_step)
        rewards = columns["reward"][(slots[:, None] + ahead) % capacity]
        rewards *= powers[:n_step]
        rewards[ahead >= steps[:, None]] = 0.0  # rows past the window belong to others
        continues = ~columns["terminated"][(slots + steps - 1) % capacity]

        ages = np.asarray(history, np.int64)
        index = columns["index"][slots]
        rows = np.empty((2, len(slots), len(ages)), np.int64)
        rows[0] = slots[:, None] - np.minimum(ages, index[:, None])
        rows[1] = (slots + steps)[:, None] - np.minimum(ages, (index + steps)[:, None])
        states = columns["state"].take(rows % capacity, axis=0).reshape(2, len(slots), len(ages) * self.state_size)
        return Sample(
            observation=states[0],
            action=columns["action"][slots],
            reward=rewards.sum(axis=1),
            discount=powers[steps] * continues,
            next_observation=states[1],
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything remembered, as numpy arrays and ints; only rows in use."""
        slots = (self._first + np.arange(self._rows)) % self.capacity
        return {
            **{name: column[slots] for name, column in self._columns.items()},
            "episode_rows": np.array(self._episode_rows, np.int64),
            "open": int(self._open),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces everything remembered; the next sample is then bit-identical to one of the buffer that was saved.

        Raises:
            DataError: if it was saved by a buffer of other sizes, or does not fit this ring.
        """
        if missing := {*self._columns, "episode_rows", "open"} - state.keys():
            raise DataError(f"replay state lacks {sorted(missing)}")
        lengths = [int(length) for length in state["episode_rows"]]
        rows = sum(lengths)
        if rows > self.capacity:
            raise DataError(f"replay state has {rows} rows, this ring {self.capacity}; raise the capacity")
        for name, column in self._columns.items():
            if np.shape(state[name]) != (rows, *column.shape[1:]):
                expected = (rows, *column.shape[1:])
                raise DataError(f"replay state {name}: shape {np.shape(state[name])}, expected {expected}")
        for name, column in self._columns.items():
            column[:rows] = state[name]
        self._first, self._rows, self._open = 0, rows, bool(state["open"])
        self._episode_rows = deque(lengths)
        is_step = np.ones(rows, bool)
        is_step[np.cumsum(lengths, dtype=np.int64) - 1] = False  # last rows hold an observation only
        self._all.fill(np.flatnonzero(is_step))
        self._operator.fill(np.flatnonzero(is_step & (self._columns["source"][:rows] != Source.POLICY)))

    def _add_row(self, state: np.ndarray, index: int, episode_rows: int) -> None:
        """Writes the newest row, evicting whole episodes older than the current one, of `episode_rows` rows so far."""
        if episode_rows + 1 > self.capacity:
            raise DataError(f"the current episode: {self._too_long(episode_rows + 1)}")
        if self._rows == self.capacity:
            self._evict()
        slot = (self._first + self._rows) % self.capacity
        self._columns["state"][slot] = state
        self._columns["index"][slot] = index
        self._columns["source"][slot] = Source.POLICY
        self._rows += 1

    def _evict(self) -> None:
        """Forgets the oldest episode."""
        rows = self._episode_rows.popleft()
        slots = (self._first + np.arange(rows - 1)) % self.capacity
        self._all.drop(rows - 1)
        self._operator.drop(int(np.count_nonzero(self._columns["source"][slots] != Source.POLICY)))
        self._first = (self._first + rows) % self.capacity
        self._rows -= rows

    def _close(self) -> None:
        """Ends the unfinished episode, if any, as truncated; one without a step leaves no trace."""
        if self._open and self._episode_rows[-1] == 1:
            self._episode_rows.pop()
            self._rows -= 1
        self._open = False

    def _too_long(self, rows: int) -> str:
        return f"needs {rows} rows, the replay has {self.capacity}; raise replay.capacity or end episodes sooner"

    @staticmethod
    def _checked(what: str, value: np.ndarray, size: int) -> np.ndarray:
        """`value` as a finite float32 row."""
        row = np.asarray(value, np.float32)
        if row.shape != (size,):
            raise DataError(f"replay: {what} has shape {row.shape}, expected {(size,)}")
        if not np.isfinite(row).all():
            raise DataError(f"replay: {what} has a NaN or an infinity: {row.tolist()}")
        return row
