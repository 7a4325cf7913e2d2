"""The policy of another run as a base."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSetup, BaseSpec, Stamped
from robot_rl.base_policy.fingerprint import fingerprint
from robot_rl.clock import NS_PER_S
from robot_rl.config.load import config_from_dict, config_to_dict
from robot_rl.data.store.layout import EPISODES
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.choice import grippers_of
from robot_rl.errors import BasePolicyError
from robot_rl.learn.networks.networks import make_policy
from robot_rl.learn.perception import make_perception
from robot_rl.run.lineage.source_run import SourceRun

CHOICE_VALUES = "gripper.last.bias"
"""Parameter of a policy with an entry for each choice of the grippers, where it has any."""


class RunPolicy(BasePolicy):
    """The deployed policy of a run, which acts as it is evaluated, one action or a chunk of them at a time.

    Args:
        setup: Its path is the run directory; the new run keeps a copy and needs the other one no more.

    Raises:
        RunDirectoryError: if there is no run.
        CheckpointError: if it has no checkpoint.
        BasePolicyError: if it corrects a base itself.
    """

    def __init__(self, setup: BaseSetup) -> None:
        self.name = setup.name
        if not setup.path and setup.state is None:
            raise BasePolicyError("base run: which run is not said; name its directory, run:DIR")
        kept = setup.state if setup.state is not None else _state_of(Path(setup.path), self.name)
        self._state = dict(kept)
        config = config_from_dict(kept["config"])
        observed = {key: tuple(shape) for key, shape in kept["observations"].items()}
        known = {key: spec for key, spec in setup.observations.items() if key in observed}
        gripper = kept["policy"].get(CHOICE_VALUES)
        self.spec = BaseSpec(
            observations=observed,
            action_size=int(kept["action_size"]),
            grippers=0 if gripper is None else grippers_of(gripper.shape[-1]),
            period=float(kept["period"]),
            horizon=config.algorithm.chunk,
            history=max(config.replay.history) + 1,
            arms=tuple(kept.get("arms", ())),
            actions=kept.get("actions", ""),
        )
        self._ages = config.replay.history
        self._policy: Any = None
        same = (self.spec.action_size, self.spec.grippers) == (setup.task.action_size, setup.task.grippers)
        if same and observed == {key: spec.shape for key, spec in known.items()}:  # else it is refused, by name
            self._perception = make_perception(known, config)
            self._policy = make_policy(setup.task, self._perception.spec, config, torch.Generator())
            self._policy.load_policy_state(dict(kept["policy"]))

    @property
    def identity(self) -> str:
        """A hash of the parameters."""
        return fingerprint(self._state["policy"])

    def begin(self, seed: int, environment: object) -> None:
        """Start an episode; any noise of the policy follows from the seed."""
        del environment
        self._policy.begin(seed)

    def plan(self, history: Sequence[Stamped]) -> ActionChunk:
        """Return the policy's action, or its chunk."""
        views = [self._perception.view(one.observation) for one in history]
        newest = len(views) - 1
        state = torch.from_numpy(np.concatenate([views[max(newest - age, 0)].state for age in self._ages]))[None]
        images = views[-1].images
        seen = None if images is None else torch.from_numpy(images)[None]
        actions = self._policy.chunk.split(self._policy.act(state, seen, deterministic=True)[0].numpy())
        return ActionChunk.from_now(actions, history[-1], self.spec.period)

    def state_dict(self) -> dict[str, Any]:
        """Return the policy with its configuration."""
        return self._state


def _state_of(path: Path, name: str) -> dict[str, Any]:
    source = SourceRun.read(path)
    config = source.config
    if config.has_base:
        raise BasePolicyError(
            f"base {name}: that run corrects a base itself, {config.base.kind}; take a run that has none, or that base"
        )
    with EpisodeStore.open(path / EPISODES) as store:
        if not len(store):
            raise BasePolicyError(f"base {name}: that run has no episode, so what it observes is not known")
        episode = store.read(store.ids()[0])
    seen = {f"images/{camera}" for camera in config.encoder.cameras if config.observations == "pixels"}
    policy = {name: value.clone() for name, value in source.state["deployed"]["policy"].items()}
    return {
        "config": config_to_dict(config),
        "observations": {
            key: list(column.shape[1:])
            for key, column in episode.observations.items()
            if key in seen or not key.startswith("images/")
        },
        **({"arms": list(episode.facts.arms)} if episode.facts.arms else {}),
        **({"actions": episode.facts.actions} if episode.facts.actions else {}),
        "action_size": episode.action.shape[1],
        "period": float(np.median(np.diff(episode.stamp_obs))) / NS_PER_S,
        "policy": policy,
    }
