"""Bases cloned from demonstrations: `clone`, one action at a time, and `chunk`, several by flow matching."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from robot_rl.base_policy.contract import (
    ActionChunk,
    BasePolicy,
    BaseSetup,
    BaseSpec,
    Report,
    Stamped,
    arms_text,
    check_arms,
)
from robot_rl.base_policy.fingerprint import fingerprint
from robot_rl.data.replay.image_memory import ImageMemory, image_memory
from robot_rl.data.schema import IMAGE_PREFIX, OPERATOR_SOURCES, STATE_PREFIX, Episode
from robot_rl.env.choice import join_grippers, split_grippers
from robot_rl.errors import BasePolicyError, CheckpointError, DataError
from robot_rl.learn.networks.chunk_network import ChunkNetwork, make_chunk_network
from robot_rl.learn.networks.parameters import load_parameters
from robot_rl.learn.perception import make_perception

LEARNING_RATE = 1e-3
"""Of Adam at the start; it falls to zero along a cosine."""
AVERAGE_RATE = 0.005
"""Rate of the exponential average of the parameters, which is the base that comes of it."""
REPORT_INTERVAL = 100


class _ClonedSteps(NamedTuple):
    """What is cloned, one row for each commanded step.

    Attributes:
        state: Stacked and scaled, newest first, (M, history * state_size).
        images: Of M slots, cropped at random when they are sampled; None where the base does not see.
        chunk: The actions from that step on, (M, H, n).
        episodes: How many they are of.
    """

    state: Tensor
    images: ImageMemory | None
    chunk: Tensor
    episodes: int


class ClonedPolicy(BasePolicy):
    """A base that imitates demonstrations.

    It learns from the steps that an operator commanded, in episodes that did not fail. A chunk that reaches beyond the
    end of its episode repeats the last action. What several grippers do together has no order, so that a number
    between two such choices means nothing: each gripper has a column of its own here, and what they do is the nearest
    of what was demonstrated.

    Args:
        setup: Where it acts; with a state, it is what that is of.
        horizon: Actions of a chunk.
        history: Observations that it plans from.
        flow: Whether it samples chunks by flow matching; otherwise it takes the mean.

    Raises:
        CheckpointError: if the state is of other observations or sizes.
        BasePolicyError: if a file is named that is not there, or it is of other arms.
    """

    def __init__(self, setup: BaseSetup, *, horizon: int, history: int, flow: bool) -> None:
        if setup.path and setup.state is None:
            raise BasePolicyError(
                f"base {setup.name}: there is no file {setup.path}; `robot-rl base train` makes one, and without "
                "a path it is trained from the demonstrations of the run"
            )
        state, task = setup.state, setup.task
        self.name, self._config, self._updates = setup.name, setup.config, setup.config.base.updates
        if state is not None:
            horizon, history = int(state["horizon"]), int(state["history"])
            check_arms(self.name, state.get("arms", ()), task)
        # Without the way to the goal: in a clone it helped nowhere, see docs/benchmarks.md, "Goals on the way".
        config = replace(setup.config, sac=replace(setup.config.sac, goal_weight=0.0))
        self._perception = make_perception(dict(setup.observations), config)
        percepts = self._perception.spec
        wanted = (STATE_PREFIX, *(f"{IMAGE_PREFIX}{camera}" for camera in self._cameras(setup)))
        self.spec = BaseSpec(
            observations={key: spec.shape for key, spec in setup.observations.items() if key.startswith(wanted)},
            action_size=task.action_size,
            grippers=task.grippers,
            period=task.control_period,
            horizon=horizon,
            history=history,
            arms=task.arms,
            actions=task.actions if state is None else state.get("actions", ""),
        )
        self._more = max(task.grippers - 1, 0)  # columns of a chunk beyond those of an action
        self._states = [key for key in self.spec.observations if key.startswith(STATE_PREFIX)]
        self._generator = torch.Generator().manual_seed(setup.config.seed)
        self._network = make_chunk_network(
            percepts,
            config,
            self._generator,
            horizon=horizon,
            history=history,
            action_size=task.action_size + self._more,
            flow=flow,
        ).requires_grad_(False)
        self._sees = percepts.images.maker if percepts.images is not None else ""
        self._grips = np.zeros((0, task.grippers), np.float32)  # what several grippers were shown to do together
        self._trained = False
        if state is not None:
            self._load(state)

    def _cameras(self, setup: BaseSetup) -> tuple[str, ...]:
        return setup.config.encoder.cameras if setup.config.observations == "pixels" else ()

    @property
    def identity(self) -> str:
        """A hash of the parameters."""
        return fingerprint(self._network.state_dict())

    def begin(self, seed: int, environment: object) -> None:
        """Start an episode; the noise of its chunks follows from the seed."""
        del environment
        self._generator.manual_seed(seed)

    def plan(self, history: Sequence[Stamped]) -> ActionChunk:
        """Plan a chunk from the newest observations; before the first one, the first is repeated."""
        if not self._trained:
            raise BasePolicyError(f"base {self.name} is not trained yet")
        newest = self._perception.view(history[-1].observation)  # only its frames count
        known = [one.observation for one in history]
        known = [known[0]] * (self.spec.history - len(known)) + known
        rows = self._perception.states({key: np.stack([one[key] for one in known]) for key in self._states})
        state = torch.from_numpy(rows[::-1].reshape(1, -1).copy())
        images = None if newest.images is None else torch.from_numpy(newest.images)[None]
        noise = torch.randn(1, self.spec.horizon, self._network.action_size, generator=self._generator)
        with torch.no_grad():
            actions = self._network.chunks(self._network.condition(state, images), noise)[0].numpy()
        return ActionChunk.from_now(self._joined(actions.clip(-1.0, 1.0)), history[-1], self.spec.period)

    @property
    def trained(self) -> bool:
        """Whether it was trained."""
        return self._trained

    @property
    def flow(self) -> ChunkNetwork | None:
        """Its network, where that carries noise to chunks of what is an action here; else None."""
        return self._network if self._network.flow and not self._more else None

    def train(self, episodes: Iterable[Episode], report: Report) -> dict[str, float]:
        """Clone demonstrations in `base.updates` steps of Adam.

        Returns:
            `loss`, the mean over the last tenth; `episodes` and `steps` that it learned from.
        """
        state, images, chunks, count = self._examples(episodes)
        if self._more:
            self._grips = np.unique(chunks.numpy()[..., -self.spec.grippers :].reshape(-1, self.spec.grippers), axis=0)
        network, generator, updates = self._network.requires_grad_(True), self._generator, self._updates
        crops = np.random.default_rng(self._config.seed)
        network.standardise(state)
        if images is not None:
            network.head.standardise(torch.from_numpy(images.sample(np.arange(len(state)), crops)))
        average = copy.deepcopy(network)
        optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
        size, losses = self._config.replay.batch_size, []
        for done in range(1, updates + 1):
            picked = torch.randint(len(state), (size,), generator=generator)
            seen = None if images is None else torch.from_numpy(images.sample(picked.numpy(), crops))
            noise = torch.randn(size, *chunks.shape[1:], generator=generator)
            time = torch.rand(size, generator=generator)
            loss = network.loss(network.condition(state[picked], seen), chunks[picked], noise, time)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            losses.append(float(loss.detach()))
            with torch.no_grad():
                rate = max(AVERAGE_RATE, 1 / done)
                torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), rate)
            if done % REPORT_INTERVAL == 0 or done == updates:
                report(done, updates, {"base_loss": float(np.mean(losses[-REPORT_INTERVAL:]))})
        network.load_state_dict(average.state_dict())
        network.requires_grad_(False)
        self._trained = True
        late = losses[-max(1, updates // 10) :]
        return {"loss": float(np.mean(late)), "episodes": float(count), "steps": float(len(state))}

    def _examples(self, episodes: Iterable[Episode]) -> _ClonedSteps:
        """Return what is learned of these episodes."""
        ages, ahead = np.arange(self.spec.history), np.arange(self.spec.horizon)
        states, images, chunks, count = [], [], [], 0
        for episode in episodes:
            if episode.facts.success is False:
                continue
            if episode.facts.arms != self.spec.arms:
                raise DataError(
                    f"base {self.name}: {episode.episode_id} is of {arms_text(episode.facts.arms)}, expected "
                    f"{arms_text(self.spec.arms)}"
                )
            if episode.action.shape[1] != self.spec.action_size:
                raise DataError(
                    f"base {self.name}: {episode.episode_id} has actions of {episode.action.shape[1]} numbers, "
                    f"expected {self.spec.action_size}"
                )
            rows = np.flatnonzero(np.isin(episode.source, OPERATOR_SOURCES))
            if len(rows) == 0:
                continue
            count += 1
            percepts = list(self._perception.of_rows(episode.observations))
            state = np.stack([percept.state for percept in percepts])
            states.append(state[np.maximum(rows[:, None] - ages, 0)].reshape(len(rows), -1))
            chunks.append(self._split(episode.action)[np.minimum(rows[:, None] + ahead, len(episode) - 1)])
            images += [seen for row in rows if (seen := percepts[row].images) is not None]
        if not chunks:
            raise DataError(f"base {self.name}: no demonstration with a step of an operator that did not fail")
        memory: ImageMemory | None = None
        if (spec := self._perception.spec.images) is not None:
            memory = image_memory(len(images), spec)
            for slot, seen in enumerate(images):
                memory.write(slot, seen)
        stacked, chunk = torch.from_numpy(np.concatenate(states)), torch.from_numpy(np.concatenate(chunks))
        return _ClonedSteps(stacked, memory, chunk, count)

    def _split(self, actions: np.ndarray) -> np.ndarray:
        """Return actions (T, n) with a column for each gripper in place of the one of their joint choice."""
        if not self._more:
            return actions
        grippers = np.array([split_grippers(float(entry), self.spec.grippers) for entry in actions[:, -1]], np.float32)
        return np.concatenate([actions[:, :-1], grippers], 1)

    def _joined(self, actions: np.ndarray) -> np.ndarray:
        """Return the reverse of `_split`; the grippers do what they were shown to do that is nearest."""
        if not self._more:
            return actions
        first = actions.shape[1] - self.spec.grippers
        away = np.linalg.norm(actions[:, None, first:] - self._grips, axis=-1)
        entries = np.array([[join_grippers(self._grips[row])] for row in away.argmin(1)], np.float32)
        return np.concatenate([actions[:, :first], entries], 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the parameters and what they are for."""
        return {
            **({"arms": list(self.spec.arms)} if self.spec.arms else {}),
            **({"actions": self.spec.actions} if self.spec.actions else {}),
            **({"grips": self._grips.tolist()} if self._more else {}),
            "observations": {key: list(shape) for key, shape in self.spec.observations.items()},
            "sees": self._sees,
            "horizon": self.spec.horizon,
            "history": self.spec.history,
            "parameters": {name: value.clone() for name, value in self._network.state_dict().items()},
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        mine = {key: list(shape) for key, shape in self.spec.observations.items()}
        then, now = (
            {*(f"{key} {shape}" for key, shape in keys.items()), *([sees] if sees else [])}
            for keys, sees in ((state["observations"], state["sees"]), (mine, self._sees))
        )
        if then != now:
            raise CheckpointError(
                f"base {self.name} was trained with observations that are others here: then "
                f"{', '.join(sorted(then - now)) or 'nothing more'}, now "
                f"{', '.join(sorted(now - then)) or 'nothing more'}; train one for them: `robot-rl base train`"
            )
        load_parameters(self._network, state["parameters"], f"base than {self.name}")
        self._grips = np.array(state.get("grips", ()), np.float32).reshape(-1, self.spec.grippers or 1)
        self._trained = True


def make_chunk(setup: BaseSetup) -> ClonedPolicy:
    """Make a base that plans `base.horizon` actions at once from `base.history` observations."""
    return ClonedPolicy(setup, horizon=setup.config.base.horizon, history=setup.config.base.history, flow=True)


def make_clone(setup: BaseSetup) -> ClonedPolicy:
    """Make a base that clones one action at a time, the mean of the demonstrated ones."""
    return ClonedPolicy(setup, horizon=1, history=len(setup.config.replay.history), flow=False)
