"""The parser of replies. A reply that does not follow the form is unparsable: nothing is guessed or filled in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from robot_rl.reward.answer import Status


class ParsedAnswer(NamedTuple):
    """The content of a reply.

    Attributes:
        status: Whether the reply could be parsed, and the model was sure.
        values: As `QueryKind` defines; empty unless `status` is OK.
        details: E.g. why it could not; JSON values.
    """

    status: Status
    values: tuple[float, ...] = ()
    details: Mapping[str, Any] = {}


def _percentage(value: float) -> float:
    if not 0.0 <= value <= 100.0:  # not in the schema: not every server knows bounds
        raise ValueError("is not a percentage from 0 to 100")
    return value


Percentage = Annotated[float, AfterValidator(_percentage)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SuccessForm(_Form):
    """The form of an answer about success."""

    seen: str
    verdict: Literal["success", "failure", "unsure"]
    confidence: Percentage


class FrameForm(_Form):
    """The part of an answer about progress that is about one frame."""

    frame: int
    seen: str
    percent: Percentage


class ProgressForm(_Form):
    """The form of an answer about progress."""

    frames: list[FrameForm]
    unsure: bool


class PreferenceForm(_Form):
    """The form of an answer about a pair."""

    seen: str
    closer: Literal["first", "second", "neither", "unsure"]


_F = TypeVar("_F", bound=_Form)


def read_success(text: str) -> ParsedAnswer:
    """Return the probability of success: the confidence in the verdict, or one minus that."""
    form, why = _read(SuccessForm, text)
    if form is None:
        return ParsedAnswer(Status.UNPARSABLE, details={"why": why})
    if form.verdict == "unsure":
        return ParsedAnswer(Status.UNSURE)
    sure = form.confidence / 100.0
    return ParsedAnswer(Status.OK, (sure if form.verdict == "success" else 1.0 - sure,))


def read_progress(text: str, frames: int) -> ParsedAnswer:
    """Return the progress in [0, 1] of each of `frames` frames, in the order in which they were shown."""
    form, why = _read(ProgressForm, text)
    if form is None:
        return ParsedAnswer(Status.UNPARSABLE, details={"why": why})
    if form.unsure:
        return ParsedAnswer(Status.UNSURE)
    percent = {entry.frame: entry.percent for entry in form.frames}
    if len(form.frames) != frames or sorted(percent) != list(range(1, frames + 1)):
        given = [entry.frame for entry in form.frames]
        return ParsedAnswer(
            Status.UNPARSABLE, details={"why": f"frames 1 to {frames} were shown, the reply is about {given}"}
        )
    return ParsedAnswer(Status.OK, tuple(percent[number] / 100.0 for number in range(1, frames + 1)))


def read_preference(text: str) -> ParsedAnswer:
    """Return 1 if the first image is closer to the goal, 0 if the second is, 0.5 if neither is."""
    form, why = _read(PreferenceForm, text)
    if form is None:
        return ParsedAnswer(Status.UNPARSABLE, details={"why": why})
    if form.closer == "unsure":
        return ParsedAnswer(Status.UNSURE)
    return ParsedAnswer(Status.OK, ({"first": 1.0, "second": 0.0, "neither": 0.5}[form.closer],))


def read_choice(first_token: Sequence[tuple[str, float]]) -> ParsedAnswer:
    """Return the probability of True against False from the first token's log-probabilities, p = e^T / (e^T + e^F).

    Log-odds T - F is what TOPReward (2026) reads, without its scaling per episode. Spellings of a choice add up. A
    choice that is not among the given tokens is at most as probable as the least of them, and is counted as that.
    """
    masses: dict[str, float] = {}
    for token, logprob in first_token:
        choice = token.strip().strip("\"'*.").lower()
        masses[choice] = masses.get(choice, 0.0) + math.exp(logprob)
    if "true" not in masses and "false" not in masses:
        return ParsedAnswer(
            Status.UNPARSABLE, details={"why": "neither True nor False is among the probable first tokens"}
        )
    least = math.exp(min(logprob for _, logprob in first_token))
    yes, no = masses.get("true", least), masses.get("false", least)
    if yes <= 0.0 or no <= 0.0:  # a probability too small for a float
        yes, no = yes + 1e-300, no + 1e-300
    details = {"log_odds": math.log(yes) - math.log(no), "bounded": not {"true", "false"} <= masses.keys()}
    return ParsedAnswer(Status.OK, (yes / (yes + no),), details)


def _read(form: type[_F], text: str) -> tuple[_F | None, str]:
    """Return the one object of this form in a text, or None and why not. Text around it is allowed."""
    found: list[_F] = []
    why = "it holds no JSON object"
    for tree in _objects(re.sub(r"^\s*<think>.*?</think>", "", text, flags=re.DOTALL)):
        try:
            read = form.model_validate(tree)
        except ValidationError as error:
            detail = error.errors()[0]
            why = f"{'.'.join(map(str, detail['loc'])) or 'the object'}: {detail['msg']}"
            continue
        if read not in found:
            found.append(read)
    if len(found) > 1:
        return None, "it gives several answers that differ"
    return (found[0], "") if found else (None, why)


def _objects(text: str) -> list[Any]:
    """Return the outermost JSON objects in a text."""
    decoder, objects, position = json.JSONDecoder(), [], text.find("{")
    while position >= 0:
        try:
            tree, end = decoder.raw_decode(text, position)
            objects.append(tree)
        except ValueError:
            end = position + 1
        position = text.find("{", end)
    return objects
