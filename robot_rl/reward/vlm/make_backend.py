"""Makes the backend of a configuration: one of ours, or a labeller of an installed package."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from robot_rl.config.labelling import LabelConfig
from robot_rl.env.registry import load, names
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.reward.backend import Backend
from robot_rl.reward.budget import Budget
from robot_rl.reward.context.examples import read_examples
from robot_rl.reward.foreign.process_backend import ProcessBackend
from robot_rl.reward.query import QueryKind
from robot_rl.reward.vlm.cascade_backend import head_first
from robot_rl.reward.vlm.chat_backend import ChatBackend
from robot_rl.reward.vlm.openai_client import Endpoint
from robot_rl.reward.vlm.prompts import SEGMENTS, choose_prompt

BUILT_IN = ("openai", "qwen", "clip", "head", "process")
LABELLER_GROUP = "robot_rl.labellers"
"""Entry points of further backends: functions of `LabelConfig` and `Budget` that return a `Backend`."""


def make_backend(config: LabelConfig, budget: Budget) -> Backend:
    """Make a backend that is ready for queries; a server was reached, and has the model.

    The settings are checked before that: a mistake shows at once, also where no server listens.

    Raises:
        UnknownNameError: if there is no backend of that name.
        PluginError: if the package of the backend cannot be imported.
        ConfigError: if the settings contradict each other, or the prompt cannot be used.
        EndpointError: if the server cannot be used.
    """
    kind = QueryKind(config.kind)
    if not config.cascade.head:
        return _backend(config, kind, budget)
    if kind is not QueryKind.SUCCESS or config.backend in ("clip", "head"):
        raise ConfigError(
            "cascade.head is for kind=success, before a backend that is dearer than a head: openai, qwen or one of an "
            "installed package"
        )
    return head_first(config.cascade, lambda: _backend(config, kind, budget))


def _backend(config: LabelConfig, kind: QueryKind, budget: Budget) -> Backend:
    if config.backend not in BUILT_IN:
        return _installed(config, budget)
    _check(config, kind)
    if config.backend == "clip":
        from robot_rl.reward.vlm.clip_backend import ClipBackend

        return ClipBackend(config.local, config.score, budget)
    if config.backend == "head":
        from robot_rl.reward.vlm.head_backend import HeadBackend

        return HeadBackend(Path(config.head), kind, budget)
    if config.backend == "process":
        return ProcessBackend(config.process, kind, budget)
    manner = SEGMENTS if config.segment and config.answer == "structured" else config.answer
    prompt = choose_prompt(kind, manner, config.prompt, config.prompt_version)
    examples = read_examples(config.examples, config.frames)
    make = partial(
        ChatBackend,
        prompt=prompt,
        answer=config.answer,
        longest_side=config.frames.longest_side,
        captions=config.frames.captions,
        examples=examples,
    )
    if config.backend == "qwen":
        from robot_rl.reward.vlm.qwen_local import LocalChat

        return make(LocalChat(config.local, budget))
    endpoint = Endpoint(config.endpoint, budget)
    endpoint.connect()
    return make(endpoint)


def _check(config: LabelConfig, kind: QueryKind) -> None:
    """Check what can be checked of the settings without a model.

    Raises:
        ConfigError: if they contradict each other.
    """
    if config.backend == "process" and (kind is QueryKind.PREFERENCE or not config.process.command):
        raise ConfigError("backend=process is for success, progress and score, and needs process.command: the program")
    if config.backend != "process" and (config.backend == "clip") != (kind is QueryKind.SCORE):
        raise ConfigError(
            f"backend={config.backend} has no answers for kind={kind}; backend=clip is for kind=score, and only that"
        )
    if config.backend == "head" and (kind not in (QueryKind.SUCCESS, QueryKind.PROGRESS) or not config.head):
        raise ConfigError(
            "backend=head is for kind=success and kind=progress, and needs the file of a head: set head, see "
            "`label train`"
        )
    if kind is QueryKind.PROGRESS and config.frames.count < 2:
        raise ConfigError("frames.count=1 shows no progress; set it to at least 2: the first frame and the last")
    if config.segment and (kind is not QueryKind.PREFERENCE or config.frames.count < 2):
        raise ConfigError(
            f"segment={config.segment} is for kind=preference with frames.count of at least 2; with segment=0 moments "
            "are compared"
        )
    frames = config.frames
    if config.backend in ("clip", "head", "process") and (frames.also or frames.captions != "number"):
        raise ConfigError(f"frames.also and frames.captions are for models that chat, not for backend={config.backend}")
    if frames.span and (kind is not QueryKind.SUCCESS or frames.count < 2):
        raise ConfigError(f"frames.span={frames.span} is for kind=success with frames.count of at least 2")
    if config.examples.count and (kind is not QueryKind.PROGRESS or config.answer != "structured" or frames.also):
        count = config.examples.count
        raise ConfigError(f"examples.count={count} is for kind=progress, answer=structured and without frames.also")
    if frames.captions == "step" and kind is QueryKind.PROGRESS:
        raise ConfigError("frames.captions=step gives away the order of the frames, which kind=progress hides")
    if config.backend != "openai" and config.budget.money:
        raise ConfigError(
            f"budget.money limits nothing with backend={config.backend}, which has no price; limit budget.calls or "
            "budget.seconds"
        )


def _installed(config: LabelConfig, budget: Budget) -> Backend:
    """Make the backend of an installed package."""
    installed = names(LABELLER_GROUP)
    if config.backend not in installed:
        raise UnknownNameError("backend", config.backend, (*BUILT_IN, *installed))
    make = cast("Callable[[LabelConfig, Budget], Backend]", load("backend", LABELLER_GROUP, config.backend))
    return make(config, budget)
