"""The memory for learning: a ring of rows, each observation stored once.

An episode of T steps takes T + 1 consecutive rows. Row t holds what step t saw, did and got; row T holds only the final
observation. A training transition is a view on these rows: next observations, n-step sums and discounts are computed
when sampling and never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.image_memory import enlarged, image_memory
from robot_rl.data.replay.percept import (
    ImageSpec,
    Percept,
    ToolElements,
    check_maker,
    check_reward,
    checked_percept,
    checked_row,
)
from robot_rl.data.replay.relabel import write_rewards, write_verdict
from robot_rl.data.replay.ring_index import EpisodeList, WindowStarts, complete_state, longer, ring_columns
from robot_rl.data.replay.row_moments import RowMoments
from robot_rl.data.replay.sample import Sample, mark_goals, way_to_goal
from robot_rl.data.replay.sampled_memory import SampledMemory
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import OPERATOR_SOURCES, Episode, Source
from robot_rl.data.shaping import shaping_term
from robot_rl.errors import DataError


class ReplayBuffer(SampledMemory):
    """Ring of rows over episodes, sampled with n-step returns.

    A window of up to n steps from step t ends early at termination (nothing is bootstrapped), at truncation (bootstraps
    from the episode's own last observation), at the newest row of an unfinished episode, and where control changes
    hands (bootstraps from the observation at which it did). Transitions can be sampled as soon as they are appended.
    When the ring is full the oldest whole episodes go. Steps that the policy did not choose are also indexed apart, so
    that interventions count as demonstrations without being stored twice.

    The last step may be undecided: until `decide` gives its reward it is not sampled, and windows end before it.

    With chunks a window is h steps in a row, whoever chose their actions. Whole ones are sampled, and those that
    terminate sooner; the last h - 1 steps of an episode that was cut, or is not finished, begin none.

    Args:
        capacity: Rows, each one observation; an episode of T steps takes T + 1. One that does not forget may grow.
        state_size: Elements of a packed observation.
        action_size: Elements of an action.
        images: What is kept of the frames of an observation; None keeps nothing.
        tools: Where the tools are in the state, by which the way to a goal is measured; see `mark_goals`.
        device: Where images are kept and looked at; everything else is small and stays with the CPU.
        shaped: Whether observations have a potential Phi; what is sampled is R + gamma^m Phi(s') - Phi(s) (Ng 1999).
        rewards: Smallest and largest possible reward of a step; others are refused. None takes any.
        moments: Receives the state of every row; None keeps no moments.
        forgets: Whether the oldest episodes go when the ring is full; otherwise it grows.
        origins: Whether it knows which steps were taken over from another run; their windows have one step.
        chunk: Of the actions that are sampled as one; None: each by itself.
    """

    def __init__(
        self,
        capacity: int,
        state_size: int,
        action_size: int,
        images: ImageSpec | None = None,
        tools: ToolElements | None = None,
        device: str = "cpu",
        *,
        shaped: bool = False,
        rewards: tuple[float, float] | None = None,
        moments: RowMoments | None = None,
        forgets: bool = True,
        origins: bool = False,
        chunk: ChunkLayout | None = None,
    ) -> None:
        if capacity < 2:
            raise DataError(f"replay capacity is {capacity} rows; the shortest episode takes 2")
        self.capacity, self.state_size, self.action_size = capacity, state_size, action_size
        self.image_spec, self.tools, self.device, self.shaped = images, tools or ToolElements(), device, shaped
        self._rewards, self._moments, self._forgets, self.origins = rewards, moments, forgets, origins
        self.chunk = chunk or ChunkLayout(1, action_size)
        self._across = self.chunk.length > 1  # windows go on where control changes hands
        self._images = image_memory(capacity, images, device) if images is not None else None
        self._columns = ring_columns(capacity, state_size, action_size, shaped=shaped, origins=origins)
        self._starts = WindowStarts(capacity, self._columns["source"])
        self._episodes = EpisodeList()
        self._first = 0  # slot of the oldest row
        self._rows = 0  # rows in use
        self._open = False  # whether the newest episode is unfinished

    def __len__(self) -> int:
        """Transitions that can be sampled."""
        return len(self._starts.all)

    @property
    def operator_count(self) -> int:
        """Transitions whose action was not chosen by the policy."""
        return len(self._starts.operator)

    def operator_steps_to_success(self, ranks: np.ndarray) -> np.ndarray:
        """Return how many steps after these operator's steps their episodes succeeded; -1 where they did not (yet).

        Shapes (N,): ranks, 0 the oldest, and steps, 0 for a step that succeeded itself.
        """
        slots = self._starts.operator.at(ranks)
        index = self._columns["index"][slots]
        steps = self._columns["success_at"][(slots - index) % self.capacity]
        return np.where(steps > 0, np.maximum(steps - 1 - index, 0), -1)

    def shown(self, ranks: np.ndarray) -> np.ndarray:
        """Return which of these steps an operator led in an episode that succeeded, shape (N,) as the ranks, bool.

        Where no episode did, those of all of them; where nobody led, those of whoever acted.
        """
        slots, columns = self._starts.all.at(ranks), self._columns
        shown = np.ones(len(slots), bool)
        if self.operator_count:
            shown &= np.isin(columns["source"][slots], OPERATOR_SOURCES)
        if columns["success_at"].any():
            shown &= columns["success_at"][(slots - columns["index"][slots]) % self.capacity] > 0
        return shown

    def begin(self, percept: Percept, name: str = "") -> None:
        """Start an episode; one that is unfinished is closed as truncated where it stands.

        Args:
            percept: Its first observation.
            name: For `decide` and `relabel`.

        Raises:
            DataError: if a shape or dtype is wrong or a value is not finite.
        """
        percept = self._checked(percept)
        self._close()
        self._add_row(percept, index=0, episode_rows=0)
        self._episodes.begin(name)
        self._open = True

    def append(self, step: Transition, next_percept: Percept) -> None:
        """Add one step to the unfinished episode.

        Args:
            step: The step; an undecided one has to be the last of its episode, and waits for `decide`.
            next_percept: Observation that the step led to.

        Raises:
            DataError: if no episode was begun, the episode outgrows the ring, or a value has a wrong shape or is not
                finite. Nothing is stored then.
        """
        action, reward, terminated, truncated, source, undecided = step
        if not self._open:
            raise DataError("append without begin: the last episode has ended; call begin with the first observation")
        if terminated and truncated:
            raise DataError("a step both terminated and truncated; it can be only one")
        name, rows = self._episodes.newest
        if undecided and not (truncated and name):
            raise DataError("only a step that truncates an episode with a name can be undecided")
        action = checked_row("action", action, self.action_size)
        next_percept = self._checked(next_percept)
        check_reward(reward, self._rewards)
        slot = (self._first + self._rows - 1) % self.capacity  # before rows move on; slots of live rows never change
        self._add_row(next_percept, index=rows, episode_rows=rows)
        self._episodes.grow()
        columns = self._columns
        columns["action"][slot] = action
        columns["reward"][slot] = reward
        columns["terminated"][slot] = terminated
        columns["source"][slot] = source
        previous = (slot - 1) % self.capacity
        same_hands = rows > 1 and (self._across or columns["source"][previous] == source)
        offset = int(columns["run_offset"][previous]) + 1 if same_hands else 0
        columns["run_offset"][slot] = offset
        columns["run_length"][(slot - offset) % self.capacity] = offset + (not undecided)
        if undecided:
            self._episodes.undecided.add(name)
        else:
            for ago in self.chunk.completed(rows - 1, terminated):
                self._starts.push((slot - ago) % self.capacity)
        if terminated and reward > 0:
            columns["success_at"][(slot - rows + 1) % self.capacity] = rows
            mark_goals(columns, slot - rows + 1, rows, rows, self.tools.width)
        self._open = not (terminated or truncated)

    def decide(self, name: str, reward: float, terminated: bool, since: int = 0) -> bool:
        """Set the reward of an episode's end, for the first time or anew; from now on its last step is sampled.

        Args:
            name: Of the episode, which has ended.
            reward: Of its last step.
            terminated: Whether nothing follows that step; otherwise it counts as truncated, unless a failure ended it.
            since: Steps after which this was so already: those from then on are judged alike. 0: only the last one is.

        Returns:
            Whether there is such an episode; one that was forgotten needs no reward.
        """
        slots = self._slots_of(name)
        if slots is None:
            return False
        write_verdict(self._columns, slots, reward, terminated, min(since or len(slots), len(slots)), self._across)
        mark_goals(self._columns, int(slots[0]), len(slots), since or len(slots), self.tools.width)
        self._release(name, int(slots[-1]))
        return True

    def relabel(self, name: str, rewards: np.ndarray) -> bool:
        """Replace the rewards of an episode that has ended, but for steps that were judged a success.

        Args:
            name: Of the episode.
            rewards: Of its T steps, shape (T,).

        Returns:
            Whether there is such an episode; one that was forgotten needs no rewards.

        Raises:
            DataError: if there are more or fewer rewards than steps, or one is not possible.
        """
        slots = self._slots_of(name)
        if slots is None:
            return False
        if rewards.shape != slots.shape:
            raise DataError(f"episode {name}: rewards of shape {rewards.shape} for {len(slots)} steps")
        for reward in rewards.tolist():
            check_reward(reward, self._rewards)
        write_rewards(self._columns, slots, rewards, self._across)
        self._release(name, int(slots[-1]))
        return True

    def add_episode(self, episode: Episode, percepts: Iterable[Percept]) -> None:
        """Add a whole episode; if its last step neither terminated nor truncated, it is closed as truncated.

        Args:
            episode: T steps.
            percepts: Its T + 1 observations.

        Raises:
            DataError: if it is longer than the ring, or its observations or actions are not finite or of another size;
                nothing is stored then.
        """
        rows = len(episode) + 1
        if self._forgets and rows > self.capacity:
            raise DataError(f"episode {episode.episode_id}: {self._too_long(rows)}")
        try:
            checked = [self._checked(percept) for percept in percepts]
            steps = Transition.of_episode(episode)
            for step in steps:
                checked_row("action", step.action, self.action_size)
        except DataError as error:
            raise DataError(f"episode {episode.episode_id}: {error}") from error
        if len(checked) != rows:
            raise DataError(f"episode {episode.episode_id}: {len(checked)} observations, expected {rows}")
        self.begin(checked[0], episode.episode_id)
        for step, percept in zip(steps, checked[1:], strict=True):
            self.append(step, percept)
        self._close()

    def draw(self, size: tuple[int, ...], rng: np.random.Generator, others: int = 0) -> np.ndarray:
        """Return ranks of transitions, uniform over all of these and `others` that are counted behind them."""
        return rng.integers(len(self) + others, size=size)

    def gather(
        self,
        ranks: np.ndarray,
        rng: np.random.Generator,
        *,
        n_step: int,
        discount: float,
        history: tuple[int, ...],
        operator_only: bool = False,
    ) -> Sample:
        """Return the transitions of these ranks, 0 the oldest, shape (count,); see `sample`. `rng` crops images."""
        columns, capacity = self._columns, self.capacity
        slots = (self._starts.operator if operator_only else self._starts.all).at(ranks)
        offset = columns["run_offset"][slots]
        left = columns["run_length"][(slots - offset) % capacity] - offset  # steps up to where control changes
        simulated = columns["simulated"][slots] if self.origins else None
        steps = np.minimum(left, n_step if simulated is None else np.where(simulated, 1, n_step))
        powers = (discount ** np.arange(n_step + 1)).astype(np.float32)
        ahead = np.arange(n_step)
        rewards = columns["reward"][(slots[:, None] + ahead) % capacity]
        rewards *= powers[:n_step]
        rewards[ahead >= steps[:, None]] = 0.0  # rows past the window belong to others
        reward = rewards.sum(axis=1)
        bootstrap = powers[steps] * ~columns["terminated"][(slots + steps - 1) % capacity]
        if self.shaped:  # the terms of the steps in between telescope
            potential = columns["potential"]
            reward += shaping_term(bootstrap, potential[slots], potential[(slots + steps) % capacity])

        ages = np.asarray(history, np.int64)
        index = columns["index"][slots]
        rows = np.empty((2 + self.origins, len(slots), len(ages)), np.int64)
        for place, after in zip(rows, (0, steps, 1), strict=False):
            place[:] = (slots + after)[:, None] - np.minimum(ages, (index + after)[:, None])
        width = len(ages) * self.state_size
        states = columns["state"].take(rows % capacity, axis=0).reshape(len(rows), len(slots), width)
        return Sample(
            observation=states[0],
            action=self.chunk.executed(self._ahead("action", slots), steps, rng)
            if self._across
            else columns["action"][slots],
            reward=reward,
            discount=bootstrap,
            next_observation=states[1],
            images=self._images.sample(slots, rng) if self._images else None,
            next_images=self._images.sample((slots + steps) % capacity, rng) if self._images else None,
            to_goal=way_to_goal(columns, slots, self.tools.pose) if self.tools.pose else None,
            simulated=None if simulated is None else simulated.astype(np.float32),
            following=None if simulated is None else states[2],
            demonstrated=self.chunk.alike(self._ahead("source", slots), left) if self._across else None,
        )

    def newest(self, history: tuple[int, ...]) -> tuple[np.ndarray, Any] | None:
        """Return what a policy sees of the newest observation: states (1, state) and images (1, *view_shape) or None.

        It draws nothing from a learner's generator. None before the first observation.
        """
        if self._rows == 0:
            return None
        slots = np.array([(self._first + self._rows - 1) % self.capacity])
        rows = slots[:, None] - np.minimum(np.asarray(history, np.int64), self._columns["index"][slots][:, None])
        state = self._columns["state"].take(rows % self.capacity, axis=0).reshape(1, len(history) * self.state_size)
        return state, self._images.sample(slots, np.random.default_rng(0)) if self._images else None

    def _slots_of(self, name: str) -> np.ndarray | None:
        """Return the slots of the steps of an episode that has ended, in their order; None if there is none."""
        found = self._episodes.find(name)
        if found is None or found[1] < 2 or (self._open and name == self._episodes.newest[0]):
            return None
        before, rows = found
        slots: np.ndarray = (self._first + before + np.arange(rows - 1)) % self.capacity
        return slots

    def _release(self, name: str, last: int) -> None:
        """Have the last step of an episode sampled from now on, if it was undecided."""
        waited = name in self._episodes.undecided
        self._episodes.undecided.discard(name)
        if self._across:  # another end completes other windows
            self._find_whole()
        elif waited:
            self._starts.insert(last, self._first)

    def _find_whole(self) -> None:
        """Find anew which windows can be sampled."""
        rows = (self._first + np.arange(self._rows)) % self.capacity
        self._starts.fill(rows[self._episodes.steps(self.chunk.length, self._columns["terminated"][rows])])

    def _ahead(self, name: str, slots: np.ndarray) -> np.ndarray:
        """Return a column of the steps of chunks that begin in these slots, shape (count, h, ...)."""
        return self._columns[name][(slots[:, None] + np.arange(self.chunk.length)) % self.capacity]

    def images_of(self, ranks: np.ndarray) -> np.ndarray | None:
        """Return the stored images of the transitions of these ranks, (count, *spec.shape); None without images."""
        return self._images.read(self._starts.all.at(ranks)) if self._images else None

    def state_dict(self) -> dict[str, Any]:
        """Everything remembered, as numpy arrays and ints; only rows in use."""
        slots = (self._first + np.arange(self._rows)) % self.capacity
        columns = {name: column[slots] for name, column in self._columns.items()}
        state = {**columns, **self._episodes.state_dict(), "open": int(self._open)}
        if self._images is not None and self.image_spec is not None:
            state |= {"images": self._images.read(slots), "images_by": self.image_spec.maker}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace everything remembered; the next sample is then bit-identical to one of the buffer that was saved.

        Raises:
            DataError: if it was saved by a buffer of other sizes, or does not fit this ring.
        """
        state = complete_state(state, self._columns)
        rows = int(sum(state["episode_rows"]))
        self._make_room(rows)
        if rows > self.capacity:
            raise DataError(f"replay state has {rows} rows, this ring {self.capacity}; raise the capacity")
        self._load_images(state, rows)
        for name, column in self._columns.items():
            column[:rows] = state[name]
        self._first, self._rows, self._open = 0, rows, bool(state["open"])
        self._episodes.load_state_dict(state)
        self._find_whole()

    def _load_images(self, state: Mapping[str, Any], rows: int) -> None:
        """Take over the images of a saved state, if they are of the same make."""
        check_maker(self.image_spec, state.get("images_by"))
        if self._images is None or self.image_spec is None:
            return
        if len(state["images"]) != rows:
            raise DataError(f"replay state has images of {len(state['images'])} rows, expected {rows}")
        for slot, images in enumerate(state["images"]):
            self._images.write(slot, self.image_spec.check(images))

    def _add_row(self, percept: Percept, index: int, episode_rows: int) -> None:
        """Write the newest row, evicting whole episodes older than the current one, of `episode_rows` rows so far."""
        self._make_room(self._rows + 1)
        if episode_rows + 1 > self.capacity:
            raise DataError(f"the current episode: {self._too_long(episode_rows + 1)}")
        if self._rows == self.capacity:
            self._evict()
        slot = (self._first + self._rows) % self.capacity
        self._columns["state"][slot] = percept.state
        if self._moments is not None:
            self._moments.add(percept.state)
        if self.shaped:
            self._columns["potential"][slot] = percept.potential
        if self._images is not None and percept.images is not None:
            self._images.write(slot, percept.images)
        self._columns["index"][slot] = index
        self._columns["success_at"][slot] = 0
        self._columns["source"][slot] = Source.POLICY
        if self.origins:
            self._columns["simulated"][slot] = False
        self._rows += 1

    def _make_room(self, rows: int) -> None:
        """Become as large as so many rows need, if nothing is forgotten: then the first row is in slot 0."""
        if self._forgets or rows <= self.capacity:
            return
        self.capacity = max(rows, 2 * self.capacity)
        self._columns = {name: longer(column, self.capacity) for name, column in self._columns.items()}
        if self._images is not None and self.image_spec is not None:
            self._images = enlarged(self._images, self._rows, self.capacity, self.image_spec, self.device)
        self._starts = WindowStarts(self.capacity, self._columns["source"])
        self._find_whole()

    def _evict(self) -> None:
        """Forget the oldest episode."""
        rows, steps = self._episodes.forget_oldest()
        if not self._columns["terminated"][(self._first + steps - 1) % self.capacity]:
            steps = max(0, steps - self.chunk.length + 1)
        self._starts.drop(steps)
        self._first = (self._first + rows) % self.capacity
        self._rows -= rows

    def _close(self) -> None:
        """End the unfinished episode, if any, as truncated; one without a step leaves no trace."""
        if self._open and self._episodes.newest[1] == 1:
            self._episodes.forget_newest()
            self._rows -= 1
        self._open = False

    def _too_long(self, rows: int) -> str:
        return f"needs {rows} rows, the replay has {self.capacity}; raise replay.capacity or end episodes sooner"

    def _checked(self, percept: Percept) -> Percept:
        return checked_percept(percept, self.state_size, self.image_spec, shaped=self.shaped)
