"""The parser of replies. A reply that does not follow the form is unparsable: nothing is guessed or filled in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from robot_rl.reward.answer import Status
from robot_rl.system.printable import one_line

_LONGEST_TEXT, _MOST_STARTS = 2**18, 256
"""Of a reply that is read: characters, and braces that are tried as the begin of an answer."""
_ROUNDING = 0.01
"""By which log-probabilities, and the sum of the probabilities, may exceed their limits."""
_LARGEST_LOG_ODDS = math.log(1e300)


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
            Status.UNPARSABLE,
            details={"why": one_line(f"frames 1 to {frames} were shown, the reply is about {given}")},
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
    Numbers that are no log-probabilities, or that together exceed 1, are unparsable.
    """
    if why := _not_log_probabilities([logprob for _, logprob in first_token]):
        return ParsedAnswer(Status.UNPARSABLE, details={"why": why})
    logs: dict[str, list[float]] = {}
    for token, logprob in first_token:
        logs.setdefault(token.strip().strip("\"'*.").lower(), []).append(logprob)
    least = min((logprob for _, logprob in first_token), default=-math.inf)
    given = {choice for choice in ("true", "false") if _log_sum(logs.get(choice, [])) > -math.inf}
    if not given:
        return ParsedAnswer(
            Status.UNPARSABLE, details={"why": "neither True nor False is among the probable first tokens"}
        )
    yes, no = (_log_sum(logs.get(choice, [least])) for choice in ("true", "false"))
    log_odds = min(max(yes - no, -_LARGEST_LOG_ODDS), _LARGEST_LOG_ODDS)
    details = {
        "log_true": max(yes, -_LARGEST_LOG_ODDS),
        "log_odds": log_odds,
        "bounded": not {"true", "false"} <= logs.keys(),
    }
    return ParsedAnswer(Status.OK, (1.0 / (1.0 + math.exp(-log_odds)),), details)


def _not_log_probabilities(logs: Sequence[float]) -> str:
    """Return why these are not log-probabilities of different tokens; empty if they can be."""
    for log in logs:
        if not log <= _ROUNDING:  # also NaN
            return f"the server gave {log} as a log-probability"
    total = sum(map(math.exp, logs))
    return f"the server gave probabilities that add up to {total:g}" if total > 1.0 + _ROUNDING else ""


def _log_sum(logs: Sequence[float]) -> float:
    """Return the log of the sum of probabilities, also of those too small for a float; -inf for none."""
    most = max(logs, default=-math.inf)
    return most if most == -math.inf else most + math.log(sum(math.exp(log - most) for log in logs))


def _read(form: type[_F], text: str) -> tuple[_F | None, str]:
    """Return the one object of this form in a text, or None and why not. Text around it is allowed."""
    if len(text) > _LONGEST_TEXT:
        return None, f"it has {len(text)} characters, more than {_LONGEST_TEXT}"
    found: list[_F] = []
    why = "it holds no JSON object"
    trees, complete = _objects(re.sub(r"^\s*<think>.*?</think>", "", text, flags=re.DOTALL))
    for tree in trees:
        try:
            read = form.model_validate(tree)
        except ValidationError as error:
            detail = error.errors()[0]
            why = one_line(f"{'.'.join(map(str, detail['loc'])) or 'the object'}: {detail['msg']}")
            continue
        if read not in found:
            found.append(read)
    if not complete:
        return None, f"it has more than {_MOST_STARTS} braces that begin no answer"
    if len(found) > 1:
        return None, "it gives several answers that differ"
    return (found[0], "") if found else (None, why)


def _objects(text: str) -> tuple[list[Any], bool]:
    """Return the outermost JSON objects in a text, and whether all of it was read."""
    decoder, position = json.JSONDecoder(), text.find("{")
    objects: list[Any] = []
    for _ in range(_MOST_STARTS):
        if position < 0:
            return objects, True
        try:
            tree, end = decoder.raw_decode(text, position)
            objects.append(tree)
        except (ValueError, RecursionError):  # no JSON, or nested so deep that it is none of our forms
            end = position + 1
        position = text.find("{", end)
    return objects, position < 0
