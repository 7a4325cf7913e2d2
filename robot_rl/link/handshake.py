"""The first words of actor and learner: what the learner shall be, and that both understand it alike."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from robot_rl import __version__
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_from_dict, config_to_dict
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import LinkError
from robot_rl.link.messages import ActorHello

_TASK = TypeAdapter(EnvironmentSpec)
_PERCEPTS = TypeAdapter(PerceptSpec)


class Agreement(NamedTuple):
    """What a learner is made of."""

    task: EnvironmentSpec
    percepts: PerceptSpec
    config: TrainConfig

    @property
    def fingerprint(self) -> str:
        """Equal on both sides if they run the same version and read the same values."""
        text = json.dumps([__version__, *self._plain()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def hello(self) -> ActorHello:
        """The message that proposes it."""
        task, percepts, config = self._plain()
        return ActorHello(config=config, task=task, percepts=percepts, fingerprint=self.fingerprint)

    @classmethod
    def of(cls, hello: ActorHello) -> Agreement:
        """What a message proposes.

        Raises:
            LinkError: if this program does not understand it, or understands it differently than the sender.
            ConfigError: if the configuration is invalid.
        """
        try:
            task, percepts = _TASK.validate_python(hello.task), _PERCEPTS.validate_python(hello.percepts)
        except ValidationError as error:
            raise LinkError(f"the actor's hello is not understood: {error}") from error
        agreement = cls(task, percepts, config_from_dict(hello.config))
        agreement.check(hello.fingerprint)
        return agreement

    def check(self, fingerprint: str) -> None:
        """Refuses a peer that has understood something else.

        Raises:
            LinkError: naming both fingerprints.
        """
        if fingerprint != self.fingerprint:
            raise LinkError(
                f"actor and learner read the configuration differently (fingerprints {fingerprint} and "
                f"{self.fingerprint}); run the same version of robot_rl on both"
            )

    def _plain(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Task, specs and configuration as a receiver would have them: 1 where a float is due becomes 1.0."""
        task = _TASK.validate_python(dataclasses.asdict(self.task))
        percepts = _PERCEPTS.validate_python(dataclasses.asdict(self.percepts))
        return _TASK.dump_python(task), _PERCEPTS.dump_python(percepts), config_to_dict(self.config)
