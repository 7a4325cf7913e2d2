"""All that a learner remembers: demonstrations, online steps, what is derived from these, and moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.dealt_ring import DealtRing, joined
from robot_rl.data.replay.demo_mixing import DemoMixer
from robot_rl.data.replay.hindsight_memory import HindsightMemory
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.data.replay.robots_memory import OnlineMemory, RobotsMemory
from robot_rl.data.replay.row_moments import RowMoments


class Memories:
    """The memories of one learner.

    Args:
        percepts: Format of the percepts.
        action_size: Elements of an action.
        max_steps: Most steps of an episode.
        return_range: Smallest and largest possible return; None: not known.
        config: Configuration of the run.
        robots: Share of each robot of a fleet in what is sampled, by name; None: there is one robot, without a name.
        part: Which of how many learners it belongs to, where the episodes are dealt to several.
        chunk: Of the actions that are learned as one; None: each by itself.

    Attributes:
        demos: Demonstrations, of which none is forgotten.
        online: What happened while training.
        hindsight: What is derived from it with other goals; None where nothing is.
        moments: Of all states seen; None where none are standardised by them.
    """

    def __init__(
        self,
        percepts: PerceptSpec,
        action_size: int,
        max_steps: int,
        return_range: tuple[float, float] | None,
        config: TrainConfig,
        robots: Mapping[str, float] | None = None,
        part: tuple[int, int] = (0, 1),
        chunk: ChunkLayout | None = None,
    ) -> None:
        rank, size = part
        self._imitated = config.sac.imitation != 0.0
        self._sampling = replace(config.replay, batch_size=config.replay.batch_size // size)
        sizes = percepts.state_size, action_size, percepts.images, percepts.tools, config.device
        rows = max(2, config.demonstrations * (max_steps + 1))
        self.moments = RowMoments(percepts.state_size) if percepts.unscaled else None
        ring = ReplayBuffer if size == 1 else partial(DealtRing, rank=rank, size=size)
        origins = config.replay.simulated == "dynamics_gap"
        shaped = percepts.potential > 0
        make = partial(ring, shaped=shaped, rewards=return_range, moments=self.moments, origins=origins, chunk=chunk)
        self.demos = make(rows, *sizes, forgets=False)
        capacity = config.replay.capacity
        self.online: OnlineMemory = (
            make(capacity, *sizes) if robots is None else RobotsMemory(capacity, robots, lambda own: make(own, *sizes))
        )
        self.hindsight: HindsightMemory | None = None
        if goals := config.replay.hindsight_goals:
            width = percepts.state_size * len(config.replay.history)
            self.hindsight = HindsightMemory(goals * config.replay.capacity, width, action_size, return_range)

    def mixer(self, n_step: int, discount: float) -> DemoMixer:
        """Return what draws minibatches from them; see `DemoMixer`."""
        return DemoMixer(
            self.demos, self.online, self._sampling, n_step, discount, self.hindsight, marked=self._imitated
        )

    @property
    def parts(self) -> dict[str, OnlineMemory]:
        """What is sampled from, by its name."""
        return {"demonstrations": self.demos, "online": self.online}

    @property
    def sizes(self) -> dict[str, float]:
        """Steps that are remembered, by their kind."""
        derived = {"replay_derived": float(len(self.hindsight))} if self.hindsight is not None else {}
        return {"replay_demonstrations": float(len(self.demos)), "replay_online": float(len(self.online)), **derived}

    def state_dict(self) -> dict[str, Any]:
        """Return all of it."""
        moments = {"moments": self.moments.state_dict()} if self.moments is not None else {}
        derived = {"hindsight": self.hindsight.state_dict()} if self.hindsight is not None else {}
        return {"online": self.online.state_dict(), "demos": self.demos.state_dict(), **moments, **derived}

    @staticmethod
    def joined(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the state of the whole from those of all learners that the episodes were dealt to."""
        online = [state["online"] for state in states]
        whole = (
            {"robots": {name: joined([one["robots"][name] for one in online]) for name in online[0]["robots"]}}
            if "robots" in online[0]
            else joined(online)
        )
        return {**states[0], "online": whole, "demos": joined([state["demos"] for state in states])}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all by what `state_dict` returned.

        Raises:
            DataError: if it does not fit.
        """
        self.online.load_state_dict(state["online"])
        self.demos.load_state_dict(state["demos"])
        if self.hindsight is not None and state.get("hindsight") is not None:  # a fork may begin with it
            self.hindsight.load_state_dict(state["hindsight"])
        if self.moments is not None:
            self.moments.load_state_dict(state["moments"])
