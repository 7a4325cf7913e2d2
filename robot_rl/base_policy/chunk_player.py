"""From chunks to one proposal in each control period: aligned by time stamps, and joined without a jump."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterator

import numpy as np

from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSetup, Stamped, make_base
from robot_rl.base_policy.planner import Beside, InTurn, Planner
from robot_rl.config.components import BaseConfig
from robot_rl.data.schema import Episode, Observation
from robot_rl.env.environment import Environment

PATIENCE = 0.2
"""Longest wait for a chunk while there is no action, as a share of the control period."""
LATE = 10
"""After how many chunks in a row that came too late it is said."""
_NS = 1e9

logger = logging.getLogger(__name__)


class ChunkPlayer:
    """Proposes an action in each control period, from the newest chunk of a base.

    A chunk is asked for anew when `base.replan` of its steps are over, when it is used up, and after somebody else was
    in control; from a planner beside control early enough that the next one can be there before it is used up. The
    action of a chunk is chosen by time: a chunk that comes late is joined at the step that is due now. A new chunk
    fades in over `base.blend` steps, also from rest. While there is none, nothing is proposed, and the arm has to hold:
    it stops at once, since how the chunk would have gone on is not known. Before that, the chunk that is asked for is
    waited for, `PATIENCE` of the period at most.

    Args:
        base: The base.
        planner: Asks it for chunks.
        config: Settings of the base.

    Attributes:
        holding: Whether there is no action for this period.
    """

    def __init__(self, base: BasePolicy, planner: Planner, config: BaseConfig) -> None:
        self.base, self._planner, self._config = base, planner, config
        self._replan = min(config.replan, max(base.spec.horizon - planner.lead, 1))
        self._blend = config.blend if base.spec.horizon > 1 else 0
        self._history: deque[Stamped] = deque(maxlen=base.spec.history)
        self._chunk: ActionChunk | None = None
        self._previous: ActionChunk | None = None  # the one before, out of which the chunk fades in
        self._faded = 0
        self._rested = False  # until the chunk came
        self._asked = 0  # steps since the last request
        self._late = 0  # chunks in a row that had no action left when they came
        self.holding = False

    def begin(self, seed: int, environment: Environment | None, stamp: int, observation: Observation) -> np.ndarray:
        """Start an episode; return the proposal for its first observation."""
        self._planner.begin(seed, environment)
        self._history.clear()
        self._chunk = self._previous = None
        self._asked, self.holding = self._replan, False
        return self.observe(stamp, observation)

    def observe(self, stamp: int, observation: Observation, *, led: bool = False) -> np.ndarray:
        """Return the proposal for an observation, shape (n,); zeros while `holding`.

        Args:
            stamp: When it was measured [ns].
            observation: The newest one.
            led: Somebody else was in control in the step before: what was planned is out of date.

        Raises:
            BasePolicyError: if the base fails.
        """
        self._history.append(Stamped(stamp, observation))
        self._asked += 1
        if led:
            self._asked = max(self._asked, self._replan)
        self._take(stamp)
        empty = self._at(self._chunk, stamp) is None
        if not self._planner.busy and (self._asked >= self._replan or empty):
            self._planner.request(tuple(self._history))
            self._asked = 0
            self._take(stamp, PATIENCE * self.base.spec.period if empty else 0.0)
        return self._propose(stamp)

    def replay(self, episode: Episode) -> np.ndarray:
        """Return the proposals along a recorded episode, shape (T + 1, n), float32; waits for each chunk.

        Raises:
            BasePolicyError: if the base fails.
        """
        given = self.base.recorded(episode)
        if given is not None:
            return given.astype(np.float32)
        self._planner.wait()
        return ChunkPlayer(self.base, InTurn(self.base, self._config.delay), self._config)._along(episode)

    def _along(self, episode: Episode) -> np.ndarray:
        rows = []
        for row in range(len(episode) + 1):
            stamp, observation = int(episode.stamp_obs[row]), episode.observation(row)
            first = row == 0
            seed = episode.facts.seed or 0
            rows.append(self.begin(seed, None, stamp, observation) if first else self.observe(stamp, observation))
        return np.stack(rows)

    def close(self) -> None:
        """End the planner and release the base."""
        self._planner.close()
        self.base.close()

    def _take(self, stamp: int, patience: float = 0.0) -> None:
        """Take the chunk that has come."""
        chunk = self._planner.poll(patience)
        if chunk is None:
            return
        self._late = self._late + 1 if self._at(chunk, stamp) is None else 0
        if self._late == LATE:
            logger.warning(
                "base %s: %d chunks in a row came when their actions were over, so the arm holds. The newest has %d "
                "of them, one for each %g s; take a base that answers sooner, or one of longer chunks",
                self.base.name,
                LATE,
                len(chunk.actions),
                self.base.spec.period,
            )
        self._previous, self._chunk, self._faded, self._rested = self._chunk, chunk, 0, self.holding

    def _propose(self, stamp: int) -> np.ndarray:
        action = self._at(self._chunk, stamp)
        self.holding = action is None
        size = self.base.spec.action_size
        if action is None:
            return np.zeros(size, np.float32)
        before = np.zeros(size, np.float32) if self._rested else self._at(self._previous, stamp)
        self._faded += 1
        if before is None or self._faded > self._blend:
            return action
        # a = (1 - w) a_before + w a_new, w = 1 / (B + 1), 2 / (B + 1), ...
        share = self._faded / (self._blend + 1)
        joined: np.ndarray = (before + share * (action - before)).astype(np.float32)
        if self.base.spec.grippers:
            joined[-1] = action[-1]
        return joined

    def _at(self, chunk: ActionChunk | None, stamp: int) -> np.ndarray | None:
        """Return the action that a chunk has for the observation of that time, or None if it is used up."""
        if chunk is None:
            return None
        place = round((stamp - int(chunk.stamps[0])) / (self.base.spec.period * _NS))
        return None if place >= len(chunk.actions) else chunk.actions[max(place, 0)]


@contextlib.contextmanager
def open_player(setup: BaseSetup) -> Iterator[ChunkPlayer | None]:
    """Open the base that a configuration names, and what plays its chunks; None without one. It is closed on exit.

    Raises:
        RobotRLError: as `make_base`.
    """
    config = setup.config
    if config.base.kind == "none":
        yield None
        return
    base = make_base(setup)
    beside = config.realtime and base.spec.ahead
    planner: Planner = Beside(base) if beside else InTurn(base, config.base.delay)
    with contextlib.closing(ChunkPlayer(base, planner, config.base)) as player:
        yield player
