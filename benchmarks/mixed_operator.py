"""Scripted operator for episodes of `peg_insert` with every kind of end, for benchmarks of rewards and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

BESIDE = np.array([0.0, 0.032, 0.0])
"""Where the decoy is, in the hole's frame [m]: its edge is 7 mm from the hole's."""
UP = np.array([0.0, 0.0, -0.7, 0.0])
"""The action of drawing the peg out: z is along the tool, and looks down."""


def distance_left(task: Any) -> float:
    """Return the true distance of the peg's tip from its inserted place [m]."""
    depth, lateral, _, _ = task.insertion()
    return float(np.hypot(lateral, task.parameters.success_depth - depth))


class Distances:
    """An observer that notes how far the tip is from where it would be inserted, at every observation of an episode.

    Args:
        task: Which knows.
    """

    def __init__(self, task: Any) -> None:
        self._task = task
        self.rows: list[float] = []
        """Of the newest episode [m]."""

    def on_start(self, episode_id: str, observation: Any) -> None:
        """Record the distance at the first observation."""
        del episode_id, observation
        self.rows = [distance_left(self._task)]

    def on_step(self, step: Any, next_observation: Any) -> None:
        """Record the distance at each further observation."""
        del step, next_observation
        self.rows.append(distance_left(self._task))


class MixedOperator:
    """Operator whose episodes are as good or bad as their kind.

    `good`: as the operator does. `clumsy`: half of its actions replaced at random. `aside`: beside the hole by some
    millimetres. `decoy`: to `BESIDE`. `shallow`: not deep enough. `undone`: inserted, and out again. `rewinds`: back
    before it is in. `stops`: half way. `idle`: nowhere. `wanders`: about.

    Args:
        cell: Whose operator and task.
        kinds: Share of each kind of episode.
    """

    def __init__(self, cell: Any, kinds: Mapping[str, float]) -> None:
        self._inner, self._task, self._kinds = cell.operator, cell.task, kinds
        self.kind = ""
        self.done = False
        """Whether the peg is in the hole; the reward source sets it."""

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode; its kind follows from its seed."""
        self._rng = rng = np.random.default_rng([seed, 8])
        self.kind = str(rng.choice(list(self._kinds), p=list(self._kinds.values())))
        angle, radius = rng.uniform(0, 2 * np.pi), rng.uniform(0.003, 0.012)
        if self.kind == "aside":
            off = np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])
        else:
            off = BESIDE * (self.kind == "decoy")
        self._inner._hole = lambda: replace(self._task.T_base_hole, position=self._task.T_base_hole.position + off)
        self._deepest, self._stop = rng.uniform(0.010, 0.022), int(rng.integers(5, 30))
        self._turn = rng.uniform(-0.015, 0.020)
        self._steps, self._walk, self._stopped, self._returns, self.done = 0, np.zeros(4), False, False, False
        self._inner.reset(seed, demonstrate)

    def act(self, state: Any, T_base_reset: Any) -> np.ndarray:
        """Return the operator's action, altered by the kind of the episode."""
        action = self._inner.act(state, T_base_reset)
        self._steps += 1
        self._walk = 0.8 * self._walk + 0.6 * self._rng.normal(0.0, 0.6, 4)
        depth = self._task.insertion()[0]
        self._stopped |= self.kind == "stops" and self._steps > self._stop
        self._stopped |= self.kind == "shallow" and depth > self._deepest
        self._returns |= self.kind == "undone" and self.done
        self._returns |= self.kind == "rewinds" and depth > self._turn
        if self._stopped or self.kind == "idle":
            return np.zeros(4)
        if self._returns:
            return UP
        if self.kind == "wanders" or (self.kind == "clumsy" and self._rng.uniform() < 0.5):
            return np.clip(self._walk, -1.0, 1.0)
        return action
