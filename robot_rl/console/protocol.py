"""What a page may say to the console. Everything else is refused, with a sentence that says what is valid."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from robot_rl.errors import RobotRLError

MAX_BYTES = 4096
"""Of one message."""
AXES = ("x", "y", "z", "roll", "pitch", "yaw")
BUTTONS = ("close", "open", "take", "slow")
Unit = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class BadMessageError(RobotRLError):
    """A page sent something that is no message."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hello(_Message):
    """The first message: who is there, and the token where one is needed."""

    type: Literal["hello"]
    name: Annotated[str, Field(min_length=1, max_length=40)] = "operator"
    token: Annotated[str, Field(max_length=200)] = ""


class Lease(_Message):
    """Take control, or give it back."""

    type: Literal["lease"]
    take: bool


class Input(_Message):
    """How keys, pads and gamepad are held now; also the heartbeat of who holds control."""

    type: Literal["input"]
    axes: Annotated[list[Unit], Field(min_length=len(AXES), max_length=len(AXES))]
    buttons: Annotated[list[bool], Field(min_length=len(BUTTONS), max_length=len(BUTTONS))]


class Do(_Message):
    """A button of the page."""

    type: Literal["do"]
    what: Annotated[str, Field(max_length=20)]


class Note(_Message):
    """Words for the record, or the reason of the last intervention."""

    type: Literal["note"]
    kind: Literal["note", "reason"] = "note"
    text: Annotated[str, Field(min_length=1, max_length=1000)]


class Label(_Message):
    """What an episode was, in hindsight."""

    type: Literal["label"]
    episode: Annotated[str, Field(max_length=200)]
    success: bool


class Hidden(_Message):
    """The page is not seen any more."""

    type: Literal["hidden"]


class Seen(_Message):
    """The page has shown the newest frames and wants the next."""

    type: Literal["seen"]


Message = Hello | Lease | Input | Do | Note | Label | Hidden | Seen
_ADAPTER: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def parse(text: str) -> Message:
    """The message in a text.

    Raises:
        BadMessageError: if it is none.
    """
    if len(text.encode()) > MAX_BYTES:
        raise BadMessageError(f"a message has {len(text.encode())} bytes, allowed are {MAX_BYTES}")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "message"
        raise BadMessageError(f"{where}: {first['msg']}") from error
