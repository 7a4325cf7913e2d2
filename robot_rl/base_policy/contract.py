"""The contract of a base policy: a history of observations in, a chunk of actions with their times out.

A base is made by a function `make(setup: BaseSetup) -> BasePolicy`, registered in the entry point group
`robot_rl.base_policies` and chosen by the setting `base.kind`. `docs/add/base_policy.md` has an example, and
`tests/contracts/base_policy_contract.py` a suite of tests for any of them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.config.components import TrainConfig
from robot_rl.data.schema import Episode, Observation
from robot_rl.env.choice import GRIPPER_CHOICES, nearest_entries
from robot_rl.env.environment import Environment, EnvironmentSpec, acts_otherwise
from robot_rl.env.registry import load
from robot_rl.errors import BasePolicyError, ConfigError, PluginError
from robot_rl.learn.networks.chunk_network import ChunkNetwork
from robot_rl.spec import ArraySpec

BASE_GROUP = "robot_rl.base_policies"
"""Entry points of base policies."""
OUT_OF_RANGE = 2.0
"""Magnitude of an action beyond which it is taken for one of another normalisation; below, it is clipped to [-1, 1]."""

Report = Callable[[int, int, Mapping[str, float]], object]
"""Receives updates done, updates in total, and the mean of each loss."""


class Stamped(NamedTuple):
    """An observation, and when it was measured [ns]."""

    stamp: int
    observation: Observation


@dataclass(frozen=True, eq=False)
class ActionChunk:
    """Actions that were planned at once.

    Attributes:
        actions: In [-1, 1], shape (H, n); with a gripper, the last entry is -1 close, 0 keep, 1 open, and with several
            their joint choice, `robot_rl.env.choice.join_grippers`.
        stamps: Time of the observation in whose control period each action is due [ns], shape (H,), int64, increasing.
    """

    actions: np.ndarray
    stamps: np.ndarray

    @classmethod
    def from_now(cls, actions: np.ndarray, newest: Stamped, period: float) -> Self:
        """Return a chunk whose first action is due in the control period of the newest observation.

        Args:
            actions: As of the chunk.
            newest: The observation.
            period: From one action to the next [s].
        """
        count = len(actions) if actions.ndim else 0  # what is no chunk is refused by `checked_chunk`
        return cls(actions, newest.stamp + round(period * NS_PER_S) * np.arange(count))


@dataclass(frozen=True)
class BaseSpec:
    """What a base needs and gives.

    Attributes:
        observations: Shape of each array that it needs of an observation.
        action_size: Length of an action.
        grippers: How many grippers the last entry of an action moves; 0: it is as the others.
        period: Time between two actions of a chunk [s].
        horizon: Actions of a chunk, H.
        history: Newest observations that it wants.
        ahead: Whether it may take longer than a control period has room for: in real time it then plans beside control.
        arms: Names of the arms that it moves, in the order of their parts of an action; empty: one.
        actions: What each entry of an action moves, as `EnvironmentSpec.actions`; empty: it is not known.
    """

    observations: Mapping[str, tuple[int, ...]]
    action_size: int
    grippers: int
    period: float
    horizon: int
    history: int = 1
    ahead: bool = False
    arms: tuple[str, ...] = ()
    actions: str = ""


@dataclass(frozen=True)
class BaseSetup:
    """The inputs of a base.

    Attributes:
        path: What follows the kind, `base.path`: a file, a directory, or an address; may be empty.
        task: Facts of the environment in which it proposes actions.
        observations: Specs of the observations there, without the base's own proposal.
        config: The configuration of the run.
        state: What `BasePolicy.state_dict` of this kind returned, for a base that a run or a file keeps: it is made of
            this, and the path is not looked at. None: it is made anew.
    """

    path: str
    task: EnvironmentSpec
    observations: Mapping[str, ArraySpec]
    config: TrainConfig
    state: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The kind and what it is made of, for messages."""
        return base_name(self.config.base.kind, self.path)


def base_name(kind: str, path: str) -> str:
    """Return the name of a base by its kind and what it is made of."""
    return f"{kind}:{path}" if path else kind


class BasePolicy(abc.ABC):
    """A policy that proposes chunks of actions and stays as it is while another one learns to correct it.

    Attributes:
        name: For messages, e.g. `server:ws://gpu:8000`.
        spec: What it needs and gives.
    """

    name: str
    spec: BaseSpec

    @property
    @abc.abstractmethod
    def identity(self) -> str:
        """A text that is the same as long as the base is the same, and another one when it has changed."""

    def begin(self, seed: int, environment: Environment | None) -> None:
        """Start an episode: forget the last one. Everything random in it follows from the seed.

        Args:
            seed: Of the episode.
            environment: Where it is played; None where a recorded episode is looked at again.
        """
        del seed, environment

    @abc.abstractmethod
    def plan(self, history: Sequence[Stamped]) -> ActionChunk:
        """Plan from the newest observations of the episode, oldest first, at most `spec.history` of them.

        Raises:
            BasePolicyError: if it cannot.
        """

    def recorded(self, episode: Episode) -> np.ndarray | None:
        """Return its proposals in a recorded episode, shape (T + 1, n); None: they follow from the observations."""
        del episode
        return None

    def close(self) -> None:
        """Release what it holds; may be called twice."""
        return

    # Of bases that are part of a run.

    @property
    def trained(self) -> bool:
        """Whether it can plan; a base that cannot is trained from the demonstrations of the run."""
        return True

    def train(self, episodes: Iterable[Episode], report: Report) -> dict[str, float]:
        """Learn from demonstrations; return figures of the result.

        Raises:
            ConfigError: if it does not learn.
            DataError: if nothing can be learned from these.
        """
        del episodes, report
        raise ConfigError(f"base {self.name} is not trained from demonstrations")

    @property
    def flow(self) -> ChunkNetwork | None:
        """The network of a base whose noise can be learned, `base.correction=noise`; None for others."""
        return None

    def state_dict(self) -> dict[str, Any] | None:
        """Return all that it consists of, as plain values, arrays and tensors, for `BaseSetup.state`.

        None: it stays outside of the run, which then names it by its identity.
        """
        return None


def make_base(setup: BaseSetup) -> BasePolicy:
    """Make the base that the configuration names, and check that it fits the environment.

    Raises:
        UnknownNameError: if no kind of that name is registered.
        PluginError: if the package behind it cannot be imported, or makes no `BasePolicy`.
        CheckpointError: if its state is of another kind, or of other sizes.
        BasePolicyError: if it cannot be made, or does not fit.
    """
    kind = setup.config.base.kind
    base = cast("Callable[[BaseSetup], object]", load("base policy", BASE_GROUP, kind))(setup)
    if not isinstance(base, BasePolicy):
        raise PluginError(f"base policy {kind} made a {type(base).__name__}, expected a subclass of BasePolicy")
    try:
        check_fit(base, setup)
    except BasePolicyError:
        base.close()
        raise
    return base


def check_fit(base: BasePolicy, setup: BaseSetup) -> None:
    """Check that a base and an environment are made for each other.

    Raises:
        BasePolicyError: naming every difference, of both sides.
    """
    spec, task, wrong = base.spec, setup.task, []
    check_arms(base.name, spec.arms, task)
    for key, shape in spec.observations.items():
        there = setup.observations.get(key)
        if there is None:
            wrong.append(f"it needs {key}, and {task.name} has {', '.join(sorted(setup.observations))}")
        elif there.shape != tuple(shape):
            wrong.append(f"its {key} has shape {tuple(shape)}, that of {task.name} {there.shape}")
    if (spec.action_size, spec.grippers) != (task.action_size, task.grippers):
        wrong.append(
            f"its actions have {spec.action_size} numbers {_grippers(spec.grippers)}, those of "
            f"{task.name} {task.action_size} {_grippers(task.grippers)}"
        )
    elif acts_otherwise(spec.actions, task):
        wrong.append(f"an action of it is {spec.actions}, and one of {task.name} is {task.actions}")
    if task.choices and not task.grippers:
        wrong.append(f"it plans no choices but those of grippers, and {task.name} has {task.choices} of them")
    if abs(spec.period - task.control_period) > 0.01 * task.control_period:
        wrong.append(f"it plans every {spec.period:g} s, and {task.name} is controlled every {task.control_period:g} s")
    if setup.config.steers:
        wrong += _not_steered(base, setup.config)
    if wrong:
        raise BasePolicyError(f"base {base.name} does not fit {task.name}: {'; '.join(wrong)}")


def _not_steered(base: BasePolicy, config: TrainConfig) -> list[str]:
    """Return why the noise of a base cannot be learned."""
    if base.flow is None:
        return [
            "it has no noise that could be learned; set base.correction=residual, or base.kind=chunk with at most one "
            "gripper"
        ]
    mine, wanted = (base.spec.horizon, base.spec.history), (config.base.horizon, config.base.history)
    if mine == wanted:
        return []
    return ["its network has base.horizon={}, base.history={}, and here they are {}, {}".format(*mine, *wanted)]


def check_arms(base: str, arms: Sequence[str], task: EnvironmentSpec) -> None:
    """Check that a base of this name moves the arms that an environment has, in the same order.

    Raises:
        BasePolicyError: naming both.
    """
    if tuple(arms) != task.arms:
        raise BasePolicyError(
            f"base {base} does not fit {task.name}: it moves {arms_text(arms)}, and {task.name} has "
            f"{arms_text(task.arms)}; take a base of these, e.g. of `robot-rl base train {task.name}`"
        )


def arms_text(names: Sequence[str]) -> str:
    """Return the arms of these names, for messages; no names are those of one arm."""
    return f"the arms {', '.join(names)}" if names else "one arm"


def _grippers(count: int) -> str:
    return {0: "without a gripper", 1: "with a gripper"}.get(count, f"with {count} grippers")


def checked_chunk(chunk: ActionChunk, base: BasePolicy) -> ActionChunk:
    """Return a chunk with actions in [-1, 1], the last entry of which is a choice of the grippers where there are any.

    Raises:
        BasePolicyError: naming the base, what it answered and what is expected.
    """
    spec = base.spec
    actions, stamps = np.asarray(chunk.actions, np.float32), np.asarray(chunk.stamps, np.int64)
    if actions.ndim != 2 or actions.shape[1] != spec.action_size or not 0 < len(actions) == len(stamps):
        raise BasePolicyError(
            f"base {base.name} answered actions of shape {actions.shape} with {stamps.shape} stamps; expected "
            f"(up to {spec.horizon}, {spec.action_size}) and a stamp for each"
        )
    if not np.isfinite(actions).all():
        raise BasePolicyError(f"base {base.name} answered an action with a NaN or an infinity; nothing is carried out")
    if np.abs(actions).max() > OUT_OF_RANGE:
        raise BasePolicyError(
            f"base {base.name} answered an action of {np.abs(actions).max():.3g}, and actions lie in [-1, 1]; its "
            "actions are normalised in another way"
        )
    if np.any(np.diff(stamps) <= 0):
        raise BasePolicyError(f"base {base.name} answered a chunk whose time stamps do not increase")
    actions = actions.clip(-1.0, 1.0)
    if spec.grippers:  # as the action mapping has it
        actions[:, -1] = nearest_entries(actions[:, -1], GRIPPER_CHOICES**spec.grippers)
    return ActionChunk(actions, stamps)
