"""The online memory of a fleet: a ring for each robot, sampled by shares and not by who plays most.

It stands where a `ReplayBuffer` stands. An episode belongs to the robot that its name begins with, as in
`arm1/episode-00012`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.percept import ImageSpec, Percept
from robot_rl.data.replay.sample import Sample
from robot_rl.data.replay.sampled_memory import SampledMemory
from robot_rl.data.replay.transition import Transition
from robot_rl.errors import DataError, UnknownNameError


def name_in_fleet(robot: str, episode_id: str) -> str:
    """Return the name of an episode in the memory of a fleet."""
    return f"{robot}/{episode_id}"


class RobotsMemory(SampledMemory):
    """One ring per robot.

    A transition is drawn by first drawing a robot, each with its share among the robots that have any, then one of its
    transitions, uniformly. A robot that plays more than others fills and forgets its own ring only.

    Args:
        capacity: Rows of all rings together; each robot gets its share of them.
        shares: Weight of each robot, by name; above 0.
        make: Makes a ring of so many rows.
    """

    def __init__(self, capacity: int, shares: Mapping[str, float], make: Callable[[int], ReplayBuffer]) -> None:
        whole = sum(shares.values())
        self._shares = dict(shares)
        self.robots = {name: make(max(2, round(capacity * share / whole))) for name, share in shares.items()}
        """The ring of each robot, by its name."""
        first = next(iter(self.robots.values()))
        self.state_size, self.action_size, self.device = first.state_size, first.action_size, first.device
        self.image_spec: ImageSpec | None = first.image_spec
        self.tools, self.shaped, self.origins, self.chunk = first.tools, first.shaped, first.origins, first.chunk
        self._newest = first

    def __len__(self) -> int:
        """Transitions of all robots that can be sampled."""
        return sum(map(len, self.robots.values()))

    @property
    def operator_count(self) -> int:
        """Transitions whose action was not chosen by the policy."""
        return sum(ring.operator_count for ring in self.robots.values())

    def begin(self, percept: Percept, name: str = "") -> None:
        """Start an episode of the robot in its name; see `ReplayBuffer.begin`."""
        self._newest = self._ring(name)
        self._newest.begin(percept, name)

    def append(self, step: Transition, next_percept: Percept) -> None:
        """Add a step to the episode that was begun last; see `ReplayBuffer.append`."""
        self._newest.append(step, next_percept)

    def decide(self, name: str, reward: float, terminated: bool, since: int = 0) -> bool:
        """See `ReplayBuffer.decide`; a name of no robot is that of a demonstration, which is not here."""
        return name.partition("/")[0] in self.robots and self._ring(name).decide(name, reward, terminated, since)

    def relabel(self, name: str, rewards: np.ndarray) -> bool:
        """See `ReplayBuffer.relabel`; a name of no robot is that of a demonstration, which is not here."""
        return name.partition("/")[0] in self.robots and self._ring(name).relabel(name, rewards)

    def operator_steps_to_success(self, ranks: np.ndarray) -> np.ndarray:
        """See `ReplayBuffer.operator_steps_to_success`; ranks count through the robots in their order."""
        steps = np.empty(ranks.shape, np.int64)
        for ring, places, own in self._parts(ranks, operator_only=True):
            steps[places] = ring.operator_steps_to_success(own)
        return steps

    def draw(self, size: tuple[int, ...], rng: np.random.Generator, others: int = 0) -> np.ndarray:
        """Return ranks of transitions, robots by their shares; see `ReplayBuffer.draw`.

        Raises:
            DataError: if nothing is remembered, or transitions that belong to no robot shall be drawn too.
        """
        if others:
            raise DataError(
                "transitions that were derived from others belong to no robot; set replay.hindsight_goals=0"
            )
        lengths = np.array([len(ring) for ring in self.robots.values()])
        weights = np.array(list(self._shares.values())) * (lengths > 0)
        if not weights.any():
            raise DataError("replay has no transitions to sample")
        chosen = rng.choice(len(lengths), size=size, p=weights / weights.sum())
        return (np.cumsum(lengths) - lengths)[chosen] + rng.integers(lengths[chosen])

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
        """Return the transitions of these ranks, which count through the robots; see `SampledMemory.sample`."""
        parts, places = [], []
        for ring, rows, own in self._parts(ranks, operator_only):
            part = ring.gather(own, rng, n_step=n_step, discount=discount, history=history, operator_only=operator_only)
            parts.append(part)
            places.append(rows)
        order = np.argsort(np.concatenate(places))
        return Sample._make(_joined(column, order) for column in zip(*parts, strict=True))

    def newest(self, history: tuple[int, ...]) -> tuple[np.ndarray, Any] | None:
        """See `ReplayBuffer.newest`; of the robot whose episode came last."""
        return self._newest.newest(history)

    def images_of(self, ranks: np.ndarray) -> np.ndarray | None:
        """See `ReplayBuffer.images_of`."""
        if self.image_spec is None:
            return None
        images = np.empty((len(ranks), *self.image_spec.shape), self.image_spec.dtype)
        for ring, places, own in self._parts(ranks, operator_only=False):
            images[places] = ring.images_of(own)
        return images

    def state_dict(self) -> dict[str, Any]:
        """Everything remembered, by robot."""
        return {"robots": {name: ring.state_dict() for name, ring in self.robots.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace everything remembered; a robot that was not there yet begins empty.

        Raises:
            DataError: if it was saved by a single robot, by one that is not of the fleet, or does not fit.
        """
        if "robots" not in state:
            raise DataError("the replay state is of a single robot, not of a fleet")
        if gone := sorted(state["robots"].keys() - self.robots.keys()):
            raise DataError(
                f"the replay state has steps of {', '.join(gone)}, which the fleet no longer has; name them again"
            )
        for name, saved in state["robots"].items():
            self.robots[name].load_state_dict(saved)

    def _ring(self, name: str) -> ReplayBuffer:
        robot = name.partition("/")[0]
        if robot not in self.robots:
            raise UnknownNameError("robot", robot, self.robots)
        return self.robots[robot]

    def _parts(self, ranks: np.ndarray, operator_only: bool) -> list[tuple[ReplayBuffer, np.ndarray, np.ndarray]]:
        """Split ranks by robot: its ring, where its ranks stand in `ranks`, and their ranks in the ring."""
        parts, first = [], 0
        for ring in self.robots.values():
            end = first + (ring.operator_count if operator_only else len(ring))
            places = np.flatnonzero((ranks >= first) & (ranks < end))
            if len(places):
                parts.append((ring, places, ranks[places] - first))
            first = end
        return parts


def _joined(parts: Sequence[Any], order: np.ndarray) -> Any:
    """Join one column of several samples, in this order."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], torch.Tensor):
        return torch.cat(list(parts))[torch.from_numpy(order).to(parts[0].device)]
    return np.concatenate(parts)[order]


OnlineMemory = ReplayBuffer | RobotsMemory
"""What happened while training, of one robot or of a fleet."""
