"""The messages from a page to the console. Any other is refused, with an error that names what is valid."""

from __future__ import annotations

import struct
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from robot_rl.errors import RobotRLError

MAX_BYTES = 4096
"""Of one message."""
AXES = ("x", "y", "z", "roll", "pitch", "yaw")
BUTTONS = ("close", "open", "take", "slow")
Unit = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class BadMessageError(RobotRLError):
    """A page sent an invalid message."""


class _PageMessage(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HelloMessage(_PageMessage):
    """The first message: the operator's name, and the token where one is needed."""

    type: Literal["hello"]
    name: Annotated[str, Field(min_length=1, max_length=40)] = "operator"
    token: Annotated[str, Field(max_length=200)] = ""


class LeaseMessage(_PageMessage):
    """Take control, or give it back."""

    type: Literal["lease"]
    take: bool


Axes = Annotated[list[Unit], Field(min_length=len(AXES), max_length=len(AXES))]
Buttons = Annotated[list[bool], Field(min_length=len(BUTTONS), max_length=len(BUTTONS))]


class OtherHand(_PageMessage):
    """The present state of a second hand, which leads the arm beside the one that the page leads."""

    axes: Axes
    """As they are meant of the first hand."""
    buttons: Buttons


class InputMessage(_PageMessage):
    """The present state of keys, pads and gamepad; also the heartbeat of the page in control."""

    type: Literal["input"]
    axes: Axes
    buttons: Buttons
    camera: Annotated[str, Field(max_length=100)] = ""
    """In whose picture the axes are meant: x ahead, y left, z up; without one they are the base's."""
    other: OtherHand | None = None


class ButtonMessage(_PageMessage):
    """A button of the page."""

    type: Literal["do"]
    what: Annotated[str, Field(max_length=20)]
    episode: Annotated[str, Field(max_length=200)] = ""
    """The episode that the page shows: a judgement is of that one alone. Empty: of the one that runs when it comes."""
    by: Annotated[str, Field(max_length=40)] = ""
    """Who pressed it, where the page is a program that passes it on."""


class NoteMessage(_PageMessage):
    """A note for the record, or the reason of the last intervention."""

    type: Literal["note"]
    kind: Literal["note", "reason"] = "note"
    text: Annotated[str, Field(min_length=1, max_length=1000)]


class LabelMessage(_PageMessage):
    """The label of a recorded episode."""

    type: Literal["label"]
    episode: Annotated[str, Field(max_length=200)]
    success: bool


class HiddenMessage(_PageMessage):
    """The page is not seen any more."""

    type: Literal["hidden"]


class FramesShownMessage(_PageMessage):
    """The page has shown the newest frames and wants the next."""

    type: Literal["seen"]


class PingMessage(_PageMessage):
    """A message that is answered at once, with the time that it has."""

    type: Literal["ping"]
    at: Annotated[float, Field(ge=0, allow_inf_nan=False)]


PageMessage = (
    HelloMessage
    | LeaseMessage
    | InputMessage
    | ButtonMessage
    | NoteMessage
    | LabelMessage
    | HiddenMessage
    | FramesShownMessage
    | PingMessage
)
_ADAPTER: TypeAdapter[PageMessage] = TypeAdapter(Annotated[PageMessage, Field(discriminator="type")])


def picture_message(number: int, age: float, jpeg: bytes) -> bytes:
    """Return the message of one frame to a page.

    Args:
        number: Of the camera; one byte.
        age: Time since the frame was read [s]; two bytes, big-endian, in ms, at most 65.535 s.
        jpeg: The frame; the rest.
    """
    return struct.pack(">BH", number, min(round(age * 1000), 0xFFFF)) + jpeg


def parse(text: str) -> PageMessage:
    """Parse a message.

    Raises:
        BadMessageError: if it is invalid.
    """
    if len(text.encode()) > MAX_BYTES:
        raise BadMessageError(f"a message has {len(text.encode())} bytes, allowed are {MAX_BYTES}")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "message"
        raise BadMessageError(f"{where}: {first['msg']}") from error
