"""The self-test of a labeller, before it costs anything: one finding per thing that has to work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robot_rl.config.labelling import LabelConfig, ScoreConfig
from robot_rl.errors import RobotRLError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.backend import Backend
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.make_backend import make_backend

RED, BLUE = (200, 30, 30), (30, 30, 200)
_TASK = "turn the whole picture red"


@dataclass(frozen=True)
class Finding:
    """One thing that was tried.

    Attributes:
        what: What was tried.
        good: Whether it works.
        facts: What was found, or what is wrong and how to cure it.
    """

    what: str
    good: bool
    facts: str


def examine(config: LabelConfig) -> list[Finding]:
    """Try to reach the model, and make two queries whose answers are known."""
    findings: list[Finding] = []

    def tried(what: str, attempt: Callable[[], str]) -> bool:
        try:
            findings.append(Finding(what, True, attempt()))
        except RobotRLError as error:
            findings.append(Finding(what, False, str(error)))
        return findings[-1].good

    kind = QueryKind(config.kind)
    if kind is QueryKind.SCORE:
        config = replace(config, score=ScoreConfig())  # so that the query here is the goal
    made: list[Backend] = []

    def reach() -> str:
        made.append(make_backend(config, Budget(config.budget)))
        who = made[0].identity
        where = f" at {config.endpoint.url}" if config.backend == "openai" else f" on {config.local.device}"
        return f"{who['model']}{where}" + (f", prompt {who['prompt']}" if "prompt" in who else "")

    if not tried("model", reach):
        return findings
    backend, answers = made[0], list[Answer]()
    if config.backend == "head":
        return findings  # it knows one task, and has no answer about red pictures

    def describe_answer(query: Query) -> str:
        answers.append(backend.answer(query))
        answer = answers[-1]
        used = f"{answer.prompt_tokens} + {answer.reply_tokens} tokens, {answer.latency:.2f} s"
        if answer.status is Status.UNPARSABLE:
            raise _UnreadableError(f"{answer.details.get('why')}; it wrote {answer.raw[:200]!r} ({used})")
        return f"{answer.status} {[round(value, 3) for value in answer.values]} ({used})"

    if all([tried(what, partial(describe_answer, query)) for what, query in _queries(kind)]):
        good = all(answer.status is Status.OK for answer in answers) and answers[0].values[-1] > answers[1].values[-1]
        facts = "a red picture is nearer to red than a blue one" if good else "it does not distinguish red from blue"
        findings.append(Finding("sense", good, facts))
    backend.close()
    return findings


class _UnreadableError(RobotRLError):
    """An answer that did not keep to the form."""


def _queries(kind: QueryKind) -> list[tuple[str, Query]]:
    """Return two queries; the answer to the first has the larger last value."""
    red, blue = _clip("red", (BLUE, RED)), _clip("blue", (BLUE, BLUE))
    if kind is QueryKind.PREFERENCE:
        one, other = _clip("red", (RED,)), _clip("blue", (BLUE,))
        return [
            ("question, red first", Query(kind, _TASK, (one, other))),
            ("question, blue first", Query(kind, _TASK, (other, one))),
        ]
    return [("question, red", Query(kind, _TASK, (red,))), ("question, blue", Query(kind, _TASK, (blue,)))]


def _clip(name: str, colours: tuple[tuple[int, int, int], ...]) -> Clip:
    frames = np.stack([np.full((64, 64, 3), colour, np.uint8) for colour in colours])
    return Clip(name, name, "none", tuple(range(len(colours))), frames)
