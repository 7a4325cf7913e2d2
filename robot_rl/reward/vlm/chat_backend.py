"""A chat model as a `Backend`: a query becomes a prompt, and its completion an answer.

Frames as a server takes them: reduced to what it needs, as JPEG in a data URL.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.context.examples import Example
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.chat_model import ChatModel, Completion, Part, Turn
from robot_rl.reward.vlm.parse_answer import (
    ParsedAnswer,
    PreferenceForm,
    ProgressForm,
    SuccessForm,
    read_choice,
    read_preference,
    read_progress,
    read_success,
)
from robot_rl.reward.vlm.prompts import EXAMPLE, Prompt

JPEG_QUALITY = 90
LONGEST_RAW = 2**16
"""Characters of a reply that are kept."""


def reduced(frame: np.ndarray, longest_side: int) -> np.ndarray:
    """Return the frame with its longest side reduced to at most `longest_side` [px]; never enlarged.

    Args:
        frame: uint8, shape (height, width, 3).
        longest_side: Of the result [px].
    """
    height, width = frame.shape[:2]
    if max(height, width) <= longest_side:
        return frame
    scale = longest_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))


def data_url(frame: np.ndarray) -> str:
    """Return a frame, uint8 of shape (height, width, 3), as `data:image/jpeg;base64,...`."""
    content = io.BytesIO()
    Image.fromarray(frame).save(content, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode()


CHOICES = ("True", "False")


class Shot(NamedTuple):
    """What is shown of one moment.

    Attributes:
        row: Which observation it is.
        views: Image of each camera, uint8 (height, width, 3), in their order.
    """

    row: int
    views: dict[str, np.ndarray]


class ChatBackend:
    """A `Backend` that prompts a `ChatModel` and parses its replies.

    Args:
        model: The model.
        prompt: Its prompt, for the kind of the queries.
        answer: `structured` or `logprobs`.
        longest_side: Limit of the images' longer side; larger ones are reduced [px].
        captions: `number`, or `step`: also the step of each frame.
        examples: Shown before each query about progress.
    """

    def __init__(
        self,
        model: ChatModel,
        prompt: Prompt,
        answer: str,
        longest_side: int,
        captions: str = "number",
        examples: tuple[Example, ...] = (),
    ) -> None:
        self._model, self._prompt, self._answer, self._side = model, prompt, answer, longest_side
        self._captions, self._examples = captions, examples
        self._prefixes: dict[str, Completion] = {}  # of episodes without an answer so far, so that none is paid twice

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model, prompt, manner of the answer, size of the images."""
        captions = {"captions": self._captions} if self._captions != "number" else {}
        manner = {"answer": self._answer, "longest_side": self._side, **captions, **self._shown_before()}
        return {**self._model.identity, **self._prompt.identity, **manner}

    @property
    def concurrency(self) -> int:
        """Queries that the model can process at the same time."""
        return self._model.concurrency

    def answer(self, query: Query) -> Answer:
        """See `Backend.answer`."""
        if query.kind is QueryKind.PROGRESS:
            return self._prefix_progress(query) if self._answer == "logprobs" else self._progress(query)
        if query.kind is QueryKind.PREFERENCE:
            shown = {place: self._shots(clip) for place, clip in zip(("first", "second"), query.clips, strict=True)}
            done = self._model.complete(Turn(self._parts(query, shown), PreferenceForm.model_json_schema()))
            return _answer(done, read_preference(done.text))
        parts = self._parts(query, {"frames": self._shots(query.clips[0])})
        if self._answer == "logprobs":
            done = self._model.complete(Turn(parts, choices=CHOICES))
            return _answer(done, read_choice(done.first_token))
        done = self._model.complete(Turn(parts, SuccessForm.model_json_schema()))
        return _answer(done, read_success(done.text))

    def close(self) -> None:
        """Close the model."""
        self._model.close()

    def _progress(self, query: Query) -> Answer:
        """Show the frames after the first in random order, so that their order cannot stand in for progress.

        Generative value learning (Ma 2024). The order follows from the query: the same query gives the same prompt.
        """
        start, *later = self._shots(query.clips[0])
        if not later:
            raise DataError(f"episode {query.clips[0].episode_id}: progress needs two frames; raise frames.count")
        order = np.random.default_rng(int(query.key(self.identity)[:16], 16)).permutation(len(later))
        parts = self._parts(query, {"start": [start], "frames": [later[index] for index in order]})
        parts = (*(part for example in self._examples for part in self._example(query.task, example)), *parts)
        done = self._model.complete(Turn(parts, ProgressForm.model_json_schema()))
        parsed = read_progress(done.text, len(later))
        values = np.zeros(len(later) + 1)  # the first frame is where 0 is, by definition
        if parsed.status is Status.OK:
            values[1 + order] = parsed.values
            parsed = parsed._replace(values=tuple(values.tolist()))
        return _answer(done, parsed._replace(details={**parsed.details, "shown_order": order.tolist()}))

    def _shown_before(self) -> dict[str, Any]:
        """Return what belongs to a label of the examples; nothing without any, so that labels made before stay."""
        if not self._examples:
            return {}
        return {
            "examples": {one.episode_id: one.fingerprint for one in self._examples},
            "example_prompt": EXAMPLE.identity["prompt_digest"],
            "trained_on": [one.episode_id for one in self._examples],  # a report leaves them out
        }

    def _example(self, task: str, example: Example) -> tuple[Part, ...]:
        captions = [f"Frame {n}, {100 * done:.0f} percent done" for n, done in enumerate(example.progress, 1)]
        frames = [reduced(frame, self._side) for frame in example.frames]
        return EXAMPLE.fill(task, {"frames": frames}, {"frames": captions})

    def _prefix_progress(self, query: Query) -> Answer:
        """Query each beginning of the clip whether the task is done; the probability of True is the progress there.

        TOPReward (2026) takes log p(True), scaled from the least to the largest of an episode; by that scale every
        episode ends near 1, a failed one too. So the probability is the value, p(True) / (p(True) + p(False)); what the
        paper takes is in the details.
        """
        shots = self._shots(query.clips[0])
        done, read = [], []
        keys = [f"{query.key(self.identity)} {length}" for length in range(1, len(shots) + 1)]
        for length, key in enumerate(keys, 1):
            if key not in self._prefixes:
                shown = {"start": shots[:1], "frames": shots[1:length] or shots[:1]}
                self._prefixes[key] = self._model.complete(Turn(self._parts(query, shown), choices=CHOICES))
            done.append(self._prefixes[key])
            read.append(read_choice(done[-1].first_token))
            if done[-1].refused or read[-1].status is not Status.OK:
                break
        for key in keys:
            self._prefixes.pop(key, None)
        together = replace(
            done[-1],
            first_token=(),
            prompt_tokens=sum(one.prompt_tokens for one in done),
            reply_tokens=sum(one.reply_tokens for one in done),
            cost=sum(one.cost for one in done),
            latency=sum(one.latency for one in done),
            attempts=sum(one.attempts for one in done),
            uncounted=sum(one.uncounted for one in done),
        )
        if read[-1].status is not Status.OK:
            why = f"the first {len(read)} frames: {read[-1].details.get('why')}"
            return _answer(together, ParsedAnswer(read[-1].status, details={"why": why}))
        names = ("log_true", "log_odds", "bounded")
        details = {name: [_json_value(one.details[name]) for one in read] for name in names}
        return _answer(together, ParsedAnswer(Status.OK, tuple(one.values[0] for one in read), details))

    def _parts(self, query: Query, shown: Mapping[str, list[Shot]]) -> tuple[Part, ...]:
        """Fill the prompt: moments in their order, the views of one moment by each camera side by side."""
        images = {place: [image for shot in shots for image in shot.views.values()] for place, shots in shown.items()}
        captions = {place: self._captions_of(shots) for place, shots in shown.items()}
        return self._prompt.fill(query.task, images, captions)

    def _captions_of(self, shots: list[Shot]) -> list[str]:
        found = []
        for number, shot in enumerate(shots, 1):
            numbered = [f"Frame {number}"] if len(shots) > 1 else []
            numbered += [f"step {shot.row}"] if self._captions == "step" else []
            for camera in shot.views:
                caption = ", ".join([*numbered, *([f"camera {camera}"] if len(shot.views) > 1 else [])])
                found.append(caption[:1].upper() + caption[1:])
        return found

    def _shots(self, clip: Clip) -> list[Shot]:
        frames = clip.by_camera().items()
        return [
            Shot(row, {camera: reduced(images[number], self._side) for camera, images in frames})
            for number, row in enumerate(clip.rows)
        ]


def _answer(done: Completion, parsed: ParsedAnswer) -> Answer:
    """Return the parsed answer with its costs."""
    status, values, details = parsed
    if done.refused:
        status, values, details = Status.REFUSED, (), {}
    elif status is Status.UNPARSABLE and done.cut:
        details = {"why": "it was cut off; raise endpoint.max_reply_tokens"}
    if done.first_token:
        details = {**details, "first_token": [[token, _json_value(log)] for token, log in done.first_token]}
    if done.served_by:
        details = {**details, "served_by": dict(done.served_by)}
    if done.uncounted:
        details = {**details, "uncounted": done.uncounted}
    if len(done.text) > LONGEST_RAW:
        details = {**details, "raw_cut_from": len(done.text)}
    return Answer(
        status=status,
        values=values,
        raw=done.text[:LONGEST_RAW],
        details=details,
        prompt_tokens=done.prompt_tokens,
        reply_tokens=done.reply_tokens,
        cost=done.cost,
        latency=done.latency,
        attempts=done.attempts,
    )


def _json_value(number: float) -> float | str:
    """Return a number as JSON can hold it: infinities and NaN as text."""
    return number if math.isfinite(number) else str(number)
