"""The mix of demonstrations and online steps in each minibatch, set by one number."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from robot_rl.config.components import ReplayConfig
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.hindsight_memory import HindsightMemory
from robot_rl.data.replay.percept import Images, ImageSpec
from robot_rl.data.replay.robots_memory import OnlineMemory
from robot_rl.data.replay.sample import Sample
from robot_rl.errors import DataError


class DemoMixer:
    """Draw minibatches from demonstrations and online experience.

    `demo_fraction` 0.5 is the symmetric sampling of RLPD (Ball et al. 2023, section 4.1). The demonstration side is the
    demonstrations and the operator's online steps, uniform over their union; the online side is all online steps, the
    operator's included, so interventions belong to both sides as in HIL-SERL (Luo et al. 2024). `corrections` can keep
    some of them out of the demonstration side.

    Args:
        demos: Demonstrations.
        online: What happened while training.
        config: Batch size, demonstration share and history.
        n_step: Most steps in a window.
        discount: Per step.
        hindsight: Transitions derived from online steps, which the online side is drawn from too, uniformly over both.
        marked: Samples tell which rows count as demonstrations.
    """

    def __init__(
        self,
        demos: ReplayBuffer,
        online: OnlineMemory,
        config: ReplayConfig,
        n_step: int,
        discount: float,
        hindsight: HindsightMemory | None = None,
        *,
        marked: bool = False,
    ) -> None:
        sizes = (demos.state_size, demos.action_size), (online.state_size, online.action_size)
        if sizes[0] != sizes[1]:
            raise DataError(f"demonstrations have (state, action) sizes {sizes[0]}, online experience {sizes[1]}")
        if demos.image_spec != online.image_spec:
            raise DataError(f"demonstrations have images {demos.image_spec}, online experience {online.image_spec}")
        if demos.chunk != online.chunk:
            raise DataError(f"demonstrations have chunks {demos.chunk}, online experience {online.chunk}")
        if demos.tools != online.tools:
            raise DataError(f"demonstrations have {demos.tools}, online experience {online.tools}")
        self.demos, self.online, self.hindsight = demos, online, hindsight
        self._config, self._n_step, self._discount, self._marked = config, n_step, discount, marked

    def sample(self, minibatches: int, rng: np.random.Generator) -> Sample:
        """Minibatches of transitions, arrays of shape (minibatches, batch_size, ...).

        Each holds round(batch_size * demo_fraction) rows of the demonstration side first, then rows of the online side;
        if one side is empty, all are of the other.

        Raises:
            DataError: if there is neither a demonstration nor a step.
        """
        total = self._config.batch_size
        demos, operator, online = len(self.demos), self.online.operator_count, len(self.online)
        if demos + online == 0:
            raise DataError("nothing to learn from: no demonstrations and no online steps yet")
        from_demos = round(total * self._config.demo_fraction)
        if demos + operator == 0:
            from_demos = 0
        elif online == 0:
            from_demos = total

        # One rank per row: demonstrations, then the operator's online steps, all online steps, and what is derived.
        derived = len(self.hindsight) if self.hindsight is not None else 0
        ranks = np.empty((minibatches, total), np.int64)
        if from_demos:
            drawn = rng.integers(demos + operator, size=(minibatches, from_demos))
            ranks[:, :from_demos] = self._trusted(drawn, rng)
        if from_demos < total:
            ranks[:, from_demos:] = self.online.draw((minibatches, total - from_demos), rng, derived) + demos + operator
        flat, first_online = ranks.ravel(), demos + operator
        first_derived = first_online + online
        parts: tuple[tuple[OnlineMemory, bool, np.ndarray, int], ...] = (
            (self.demos, False, flat < demos, 0),
            (self.online, True, (flat >= demos) & (flat < demos + operator), demos),
            (self.online, False, (flat >= first_online) & (flat < first_derived), first_online),
        )
        mixed = self._empty(minibatches * total)
        for buffer, operator_only, mask, first in parts:
            rows = np.flatnonzero(mask)
            if len(rows) == 0:
                continue
            part = buffer.gather(
                flat[rows] - first,
                rng,
                n_step=self._n_step,
                discount=self._discount,
                history=self._config.history,
                operator_only=operator_only,
            )
            _put(mixed, rows, part)
        if self.hindsight is not None and len(rows := np.flatnonzero(flat >= first_derived)):
            _put(mixed, rows, self.hindsight.gather(flat[rows] - first_derived, self._discount))
        if self._marked:
            demonstrated = self._demonstrated(flat) * (1.0 if mixed.demonstrated is None else mixed.demonstrated)
            mixed = mixed._replace(demonstrated=demonstrated, corrected=self._corrected(flat))
        return Sample._make(a if a is None else a.reshape(minibatches, total, *a.shape[1:]) for a in mixed)

    def _demonstrated(self, ranks: np.ndarray) -> np.ndarray:
        """Return 1 where rows count as demonstrations, else 0; of given ones those of `ReplayBuffer.shown` do."""
        demos = len(self.demos)
        counts, given = ranks < demos + self.online.operator_count, ranks < demos
        counts[given] = self.demos.shown(ranks[given])
        return counts.astype(np.float32)

    def _corrected(self, ranks: np.ndarray) -> np.ndarray:
        """Return 1 where rows are corrections on the demonstration side, else 0."""
        demos = len(self.demos)
        return ((ranks >= demos) & (ranks < demos + self.online.operator_count)).astype(np.float32)

    def _trusted(self, ranks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the ranks with operator's steps that do not count as demonstrations replaced.

        They are replaced by demonstrations, or by any online steps where there are none. `replay.corrections` says
        which count; with `demonstration` all do, and nothing is drawn.
        """
        kind, demos, operator = self._config.corrections, len(self.demos), self.online.operator_count
        corrections = ranks >= demos
        if kind == "demonstration" or not corrections.any():
            return ranks
        left = self.online.operator_steps_to_success(ranks[corrections] - demos)
        trust = (left >= 0).astype(float)
        if kind == "return_weighted":
            trust *= self._discount ** np.maximum(left, 0)
        others = (
            rng.integers(demos, size=left.shape)
            if demos
            else demos + operator + rng.integers(len(self.online), size=left.shape)
        )
        ranks = ranks.copy()
        ranks[corrections] = np.where(rng.uniform(size=left.shape) < trust, ranks[corrections], others)
        return ranks

    def _empty(self, count: int) -> Sample:
        """Arrays to be filled."""
        width = len(self._config.history) * self.online.state_size
        shapes = ((count, width), (count, self.online.chunk.size), (count,), (count,), (count, width))
        sample = Sample(*(np.empty(shape, np.float32) for shape in shapes))
        if (spec := self.online.image_spec) is not None:
            now, later = (self._empty_images(count, spec) for _ in range(2))
            sample = sample._replace(images=now, next_images=later)
        if pose := self.online.tools.pose:
            sample = sample._replace(to_goal=np.empty((count, len(pose)), np.float32))
        if self._marked and self.online.chunk.length > 1:
            sample = sample._replace(demonstrated=np.empty(count, np.float32))
        if self.online.origins:
            sample = sample._replace(simulated=np.empty(count, np.float32), following=np.empty_like(sample.observation))
        return sample

    def _empty_images(self, count: int, spec: ImageSpec) -> Images:
        """Images to be filled, where they are looked at."""
        shape, device = (count, *spec.view_shape), self.online.device
        if device == "cpu":
            return np.empty(shape, spec.dtype)
        return torch.empty(shape, dtype=getattr(torch, spec.dtype), device=device)


def _put(mixed: Sample, rows: np.ndarray, part: Sample) -> None:
    """Write transitions into these rows."""
    for target, values in zip(mixed, part, strict=True):
        if isinstance(target, Tensor):
            target[torch.from_numpy(rows)] = torch.as_tensor(values)
        elif target is not None:
            target[rows] = values
