"""The socket of the learner: what it needs of an algorithm, and how an algorithm is found by its name.

An algorithm is a function `make(setup: AlgorithmSetup) -> Algorithm`, registered in the entry point group
`robot_rl.algorithms` and chosen by the setting `algorithm.name`. `docs/add/algorithm.md` has an example, and
`tests/contracts/algorithm_contract.py` a suite of tests for any of them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar, cast

from torch import Tensor

from robot_rl.config.components import TrainConfig
from robot_rl.env.registry import load
from robot_rl.errors import ConfigError, PluginError
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.networks.networks import Policy

ALGORITHM_GROUP = "robot_rl.algorithms"
"""Entry points of algorithms."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class AlgorithmSetup:
    """The inputs of an algorithm.

    Attributes:
        policy: A fresh one, to be trained in place. All randomness comes from its `generator`, whose device is where
            the algorithm computes.
        return_range: Smallest and largest possible discounted return; None: not known.
        config: The configuration of the run; its discount is a number.
    """

    policy: Policy
    return_range: tuple[float, float] | None
    config: TrainConfig

    def options(self, **defaults: float) -> dict[str, float]:
        """Return the numbers of this algorithm alone: `defaults`, changed by `algorithm.options`.

        Raises:
            ConfigError: if an option is none of them, or not a number.
        """
        values, name = dict(defaults), self.config.algorithm.name
        for option in self.config.algorithm.options:
            key, _, text = option.partition("=")
            if key not in values:
                valid = ", ".join(values) or "none"
                raise ConfigError(f"algorithm.options: {option!r} is no option of {name}; valid: {valid}")
            try:
                values[key] = float(text)
            except ValueError as error:
                raise ConfigError(f"algorithm.options: {option!r}: expected {key}=<number>") from error
        return values


class StepTransform(Protocol):
    """Makes an equivalent function of a function, e.g. a compiled one."""

    def __call__(self, step: Callable[_P, _R], /) -> Callable[_P, _R]:
        """Return a function of the same arguments with the same result."""
        ...


class Algorithm(abc.ABC):
    """Trains a policy on batches of transitions.

    `Learner` owns replay, counters, the schedule of updates and the check for NaN; an algorithm owns networks,
    optimizers and losses. `Engine` makes `update` fast through `transform_steps` and `capturable`.

    Attributes:
        policy: The policy that it trains, in place.
        n_step: Most steps that a window of the batches spans before it bootstraps.
        discount: Per step, for the rewards and bootstraps of the batches.
        capturable: Whether an engine may record `update` as a CUDA graph and replay it. This needs that `update`
            changes tensors in place, decides nothing by their values or by a counter in Python, and draws random
            numbers only from the policy's generator.
        divisible: Whether several processes may share its updates, each with a part of every minibatch. This needs that
            its losses are means over a minibatch, its optimizers average over `policy.ranks`, and its random numbers
            do not depend on the rows.
    """

    policy: Policy
    n_step: int
    discount: float
    capturable: ClassVar[bool] = False
    divisible: ClassVar[bool] = False

    @abc.abstractmethod
    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update on each of the N minibatches of a batch.

        Returns:
            Detached scalars on the device of the policy, the same names each time, e.g. the losses. `q_mean`, where
            there is one, is shown in the progress display.

        Raises:
            SpecError: if the batch does not fit the networks.
        """

    def pretrain(self, batch: Batch) -> dict[str, Tensor]:
        """Make one update on each minibatch of demonstrations, before the first online step; returns as `update`.

        Raises:
            ConfigError: if the algorithm does not learn from demonstrations alone.
        """
        del batch
        raise ConfigError(f"{type(self).__name__} has no pretraining; set offline.steps=0, or choose another algorithm")

    def end_pretraining(self) -> None:
        """Conclude the pretraining; called once, after its last `pretrain`. Does nothing unless overridden."""
        return

    def advance(self, env_steps: int) -> dict[str, float]:
        """Set what follows a schedule to its value after so many env steps; called before each update.

        Returns:
            What follows one, by name, for the logs; nothing unless overridden.
        """
        del env_steps
        return {}

    def value(self, state: Tensor, images: Tensor | None) -> Tensor | None:
        """Return the return that is expected from states (B, state) on, shape (B,); None where nothing expects one."""
        del state, images
        return None

    def transform_steps(self, transform: StepTransform) -> None:
        """Put `transform(step)` in the place of each step function that `update` calls, e.g. to compile it.

        A step function depends on its arguments and on parameters alone, and changes nothing but parameters and the
        state of optimizers, in place. By default there are none.
        """
        del transform

    @abc.abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on, the policy and its generator included.

        It holds nested dicts, lists, tensors, numpy arrays and plain values; see `save_checkpoint`.
        """

    @abc.abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned; the next update is then the same, bit for bit on a CPU.

        Raises:
            CheckpointError: if it is the state of another algorithm, or of networks of other sizes.
        """


def make_algorithm(setup: AlgorithmSetup) -> Algorithm:
    """Make the algorithm that the configuration names.

    Raises:
        UnknownNameError: if none of that name is registered.
        PluginError: if the package behind it cannot be imported, or makes no `Algorithm`.
        ConfigError: if the settings contradict each other or do not fit the algorithm.
    """
    name = setup.config.algorithm.name
    make = cast("Callable[[AlgorithmSetup], object]", load("algorithm", ALGORITHM_GROUP, name))
    algorithm = make(setup)
    if not isinstance(algorithm, Algorithm):
        raise PluginError(f"algorithm {name} made a {type(algorithm).__name__}, expected a subclass of Algorithm")
    if (learners := setup.config.learners) > 1 and not algorithm.divisible:
        raise ConfigError(f"learners={learners}: algorithm {name} cannot be shared by several; set learners=1")
    return algorithm
