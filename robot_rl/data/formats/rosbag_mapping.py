"""The map from the topics of a bag to an episode: a small YAML file.

    rate: 10                       # steps per second, at most 10,000
    task: peg_insert               # optional, for the store
    source: human                  # who acted: human, policy or script
    max_age: 0.5                   # [s]; an older observation is an error
    observations:
      state/tcp_pose: {topic: /tcp_pose, fields: [pose.position, pose.orientation]}
      images/wrist: {topic: /wrist/image_raw}
    action: {topic: /servo/command, fields: [twist.linear, twist.angular], scale: 0.1}
    episode: {topic: /recording, fields: [data]}      # optional: true while an episode runs; else the bag is one
    success: {topic: /success, fields: [data]}        # optional: true ends the episode with reward 1

A field is a path within the message; one that leads to a message or an array stands for all its numbers, in order. The
value is divided by `scale`. Time is that at which a message was recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from robot_rl.config.yaml_file import read_yaml
from robot_rl.data.schema import FASTEST, IMAGE_PREFIX
from robot_rl.errors import ConfigError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TopicFields(_Strict):
    """Numbers of the messages of a topic."""

    topic: str
    fields: tuple[str, ...] = ()
    """Paths within the message; none for pictures."""
    scale: float | tuple[float, ...] = 1.0


class BagMapping(_Strict):
    """Rules by which a bag becomes episodes."""

    rate: float = Field(gt=0, le=FASTEST)
    observations: dict[str, TopicFields] = Field(min_length=1)
    action: TopicFields
    task: str | None = None
    source: Literal["human", "policy", "script"] = "human"
    max_age: float = Field(default=0.5, gt=0)
    episode: TopicFields | None = None
    success: TopicFields | None = None

    @model_validator(mode="after")
    def _check(self) -> BagMapping:
        if wrong := [key for key in self.observations if not key.startswith((IMAGE_PREFIX, "state/"))]:
            raise ValueError(f"observation {wrong[0]!r} must be called state/... or images/...")
        for key, entry in self.topics.items():
            if key.startswith(IMAGE_PREFIX):
                if entry.fields:
                    raise ValueError(f"{key} is a picture; leave out `fields`")
            elif not entry.fields:
                raise ValueError(f"{key} needs `fields`")
        return self

    @property
    def topics(self) -> dict[str, TopicFields]:
        """Every entry by our name for it."""
        named = {"action": self.action, "episode": self.episode, "success": self.success}
        return {**self.observations, **{name: entry for name, entry in named.items() if entry is not None}}


def load_mapping(path: Path) -> BagMapping:
    """Read a mapping file.

    Raises:
        ConfigError: naming what is wrong in it.
    """
    try:
        return BagMapping.model_validate(read_yaml(path, "mapping"))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'mapping'}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{path}: {wrong}") from error
