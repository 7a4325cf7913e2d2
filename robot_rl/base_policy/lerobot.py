"""A checkpoint of LeRobot as a base: it runs in the interpreter in which LeRobot is installed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robot_rl.adapters import lerobot_guest
from robot_rl.adapters.foreign_process import ForeignProcess
from robot_rl.adapters.guest_messages import GuestError
from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSetup, BaseSpec, Stamped, check_fit
from robot_rl.base_policy.observation_names import ObservationNames
from robot_rl.base_policy.planner import REPLY_LIMIT
from robot_rl.data.schema import IMAGE_PREFIX, STATE_PREFIX
from robot_rl.env.environment import Environment
from robot_rl.errors import BasePolicyError
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

WEIGHTS = "model.safetensors"
CONFIG = "config.json"


class LeRobotBase(BasePolicy):
    """A policy of LeRobot in a process of its own.

    Observations have the names of a LeRobot dataset that we export: `observation.state` is all state vectors side by
    side, `observation.images.<camera>` a picture. `base.names` sets others.

    Args:
        setup: Its path is the directory of the checkpoint, `.../pretrained_model`; `base.python` names the interpreter.

    Raises:
        BasePolicyError: if there is no checkpoint, the process cannot be started, or the policy cannot be loaded.
    """

    def __init__(self, setup: BaseSetup) -> None:
        task, path, config = setup.task, Path(setup.path), setup.config.base
        self.name, self._task = setup.name, task.instruction
        for file in (CONFIG, WEIGHTS):
            if not (path / file).is_file():
                raise BasePolicyError(
                    f"base {self.name}: there is no {path / file}; the path is the directory `pretrained_model` of a "
                    "checkpoint of LeRobot"
                )
        self._identity = hashlib.sha256((path / CONFIG).read_bytes() + (path / WEIGHTS).read_bytes()).hexdigest()[:16]
        facts = _facts(path / CONFIG, self.name)
        cameras = [key for key in setup.observations if key.startswith(IMAGE_PREFIX)]
        vectors = tuple(sorted(key for key in setup.observations if key.startswith(STATE_PREFIX)))
        usual = {"observation.state": vectors, **{f"observation.{key.replace('/', '.')}": (key,) for key in cameras}}
        there = {name: ours for name, ours in usual.items() if name in facts.observations}
        self._names = ObservationNames(config.names, there, setup.observations, self.name)
        self._check(facts.observations)
        self.spec = BaseSpec(
            observations=self._names.ours,
            action_size=facts.action_size,
            grippers=task.grippers,
            period=task.control_period,
            horizon=facts.horizon,
            history=facts.history,
            ahead=True,
            arms=task.arms,
        )
        check_fit(self, setup)  # before anything is started
        self._process = ForeignProcess(
            Path(config.python or sys.executable),
            Path(lerobot_guest.__file__),
            name=f"base {self.name}",
            error=BasePolicyError,
            setting="base.python is the path of a Python in which LeRobot and msgpack are installed",
        )
        try:
            self._process.start({"path": str(path.absolute())})
        except GuestError as error:
            self._process.close()
            raise BasePolicyError(f"base {self.name}: {error.text}; base.python names its interpreter") from error

    def _check(self, wanted: dict[str, tuple[int, ...]]) -> None:
        """Check that what the policy observes is there, in its shape; a picture is (3, height, width) to it."""
        given = {
            name: (shape[2], *shape[:2]) if len(shape) == 3 else shape for name, shape in self._names.theirs.items()
        }
        if wrong := [
            f"{name} {shape} and gets {given.get(name, 'none')}"
            for name, shape in wanted.items()
            if given.get(name) != shape
        ]:
            raise BasePolicyError(
                f"base {self.name} observes {'; '.join(wrong)}; base.names=[THEIRS=OURS+OURS, ...] says "
                "what that is made of"
            )

    @property
    def identity(self) -> str:
        """A hash of the checkpoint's configuration and weights."""
        return f"LeRobot {self._identity}"

    def begin(self, seed: int, environment: Environment | None) -> None:
        """Start an episode."""
        del environment
        self._call("begin", seed)

    def plan(self, history: Sequence[Stamped]) -> ActionChunk:
        """Have the policy plan."""
        given = [self._names.of(one.observation) for one in history]
        actions = np.asarray(self._call("plan", given, self._task))[: self.spec.horizon]
        return ActionChunk.from_now(actions, history[-1], self.spec.period)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _call(self, method: str, *arguments: object) -> object:
        try:
            return self._process.call(method, *arguments, limit=REPLY_LIMIT)
        except GuestError as error:
            raise BasePolicyError(f"base {self.name} failed: {error.text}") from error


class _Facts(NamedTuple):
    """What the configuration of a checkpoint says.

    Attributes:
        observations: Shape of each feature that it observes.
        action_size: Length of an action.
        horizon: Actions of a chunk that are carried out.
        history: Observations that it plans from.
    """

    observations: dict[str, tuple[int, ...]]
    action_size: int
    horizon: int
    history: int


def _facts(file: Path, name: str) -> _Facts:
    """Read the configuration of a checkpoint.

    Raises:
        BasePolicyError: if it is not one of LeRobot.
    """
    try:
        content = parse_json(read_regular(file))
        observed = {key: tuple(map(int, feature["shape"])) for key, feature in content["input_features"].items()}
        size = int(content["output_features"]["action"]["shape"][0])
        horizon = int(content.get("n_action_steps") or content.get("chunk_size") or 1)
        return _Facts(observed, size, horizon, int(content.get("n_obs_steps") or 1))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BasePolicyError(
            f"base {name}: {file} is no configuration of a policy of LeRobot 0.4: {type(error).__name__}: {error}"
        ) from error
