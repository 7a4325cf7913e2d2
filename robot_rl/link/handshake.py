"""The handshake of actor and learner: what the learner is made from, and a check that both read it alike."""

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
from robot_rl.link.messages import ActorHello, RankHello

_TASK = TypeAdapter(EnvironmentSpec)
_PERCEPTS = TypeAdapter(PerceptSpec)


class Agreement(NamedTuple):
    """All that a learner is made from."""

    task: EnvironmentSpec
    percepts: PerceptSpec
    config: TrainConfig

    @property
    def fingerprint(self) -> str:
        """Equal on both sides if they run the same version and read the same values."""
        text = json.dumps([__version__, *self._plain()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def hello(self) -> ActorHello:
        """Return the message that proposes it."""
        task, percepts, config = self._plain()
        return ActorHello(config=config, task=task, percepts=percepts, fingerprint=self.fingerprint)

    @classmethod
    def of(cls, hello: ActorHello | RankHello) -> Agreement:
        """Return the agreement that a message proposes.

        Raises:
            LinkError: if this program cannot read it, or reads it differently than the sender.
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
        """Refuse a peer that has read something else.

        Raises:
            LinkError: naming both fingerprints.
        """
        if fingerprint != self.fingerprint:
            raise LinkError(
                f"actor and learner read the configuration differently (fingerprints {fingerprint} and "
                f"{self.fingerprint}); run the same version of robot_rl on both"
            )

    def _plain(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return task, specs and configuration as a receiver has them: 1.0 for 1 where a float is due, keys as text."""
        task = _TASK.validate_python(dataclasses.asdict(self.task))
        percepts = _PERCEPTS.validate_python(dataclasses.asdict(self.percepts))
        return (
            _TASK.dump_python(task),
            _PERCEPTS.dump_python(percepts),
            json.loads(json.dumps(config_to_dict(self.config))),
        )
