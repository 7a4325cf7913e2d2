"""Settings of labelling: the model, the query, the frames, and the limits of cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import STRICT, Fraction, NonNegative, NonNegativeReal, Positive, PositiveReal
from robot_rl.config.reward import BudgetConfig


@dataclass(frozen=True, config=STRICT)
class EndpointConfig:
    """An OpenAI-compatible server: vLLM, llama.cpp, Ollama, or one in the cloud."""

    url: str = "http://127.0.0.1:8000/v1"
    """Where it is, up to and with `/v1`."""
    model: str = ""
    """Name of the model as the server calls it; empty takes the only one that it serves."""
    revision: str = ""
    """Revision of the model, if you know it; part of what a label remembers, so that another one is queried anew."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable with the API key. It may be unset for a server that wants none."""
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the form of the answer is requested from the server; `none` describes it in the prompt only."""
    temperature: NonNegativeReal = 0.0
    """Of sampling."""
    max_reply_tokens: Positive = 512
    """Longest answer."""
    timeout_s: PositiveReal = 60.0
    """Time for one attempt [s]."""
    attempts: Positive = 5
    """Tries for one query before it is left for the next run; waits grow, or follow the server's Retry-After."""
    backoff_s: PositiveReal = 1.0
    """Longest wait before the second try [s]; doubles with each further one, and is drawn at random below that."""
    longest_wait_s: PositiveReal = 300.0
    """Longest wait that a server may request [s]; if it requests more, the run stops, and says so."""
    concurrency: Positive = 4
    """Questions under way at the same time."""
    price_prompt: NonNegativeReal = 0.0
    """Price of a million prompt tokens, in any currency."""
    price_reply: NonNegativeReal = 0.0
    """Price of a million reply tokens."""


@dataclass(frozen=True, config=STRICT)
class LocalConfig:
    """A model on this machine, through transformers."""

    model: str = ""
    """Folder, or name on the Hugging Face hub: e.g. `Qwen/Qwen3-VL-4B-Instruct` for `qwen`,
    `google/siglip2-base-patch16-224` for `clip`."""
    revision: str = ""
    """Commit of it; empty takes what is there. A label remembers which that was."""
    download: bool = False
    """Whether to fetch it from the hub if it is not there."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where it computes."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """In which it computes."""
    batch_size: Positive = 16
    """Frames at a time, for scores."""
    max_reply_tokens: Positive = 512
    """Longest answer."""


@dataclass(frozen=True, config=STRICT)
class ProcessConfig:
    """A model in a program of its own, for `backend=process`; see docs/add/labeller.md."""

    command: tuple[str, ...] = ()
    """Program and arguments, e.g. `[/opt/robometer/bin/python, serve.py]`."""
    timeout_s: PositiveReal = 60.0
    """Longest time to get ready, and for one answer [s]; then the program is ended, and started again."""


@dataclass(frozen=True, config=STRICT)
class ScoreConfig:
    """For `kind=score`: what each frame is compared with."""

    goals: tuple[str, ...] = ()
    """Phrases for the finished task, e.g. "the peg is in the hole"; none takes the task itself."""
    baselines: tuple[str, ...] = ()
    """Phrases for the scene without the goal, e.g. "a robot arm above a table"."""
    goal_images: tuple[str, ...] = ()
    """Files with pictures of the finished task; they count beside the phrases."""
    alpha: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How much of what lies off the line from baseline to goal is left out. Raise it only if that separates known
    outcomes better: a careless baseline turns the score over."""


@dataclass(frozen=True, config=STRICT)
class CascadeConfig:
    """For `kind=success`: a head that answers first, so that the backend is queried only where the head is unsure."""

    head: str = ""
    """File of the head, see `robot-rl label train`; empty queries the backend about every episode."""
    sure: Annotated[float, Field(gt=0.5, le=1)] = 0.99
    """Probability of success, or of failure, from which on the head's answer stands. Heads are too sure of themselves:
    lower it only with a report at hand."""


@dataclass(frozen=True, config=STRICT)
class FramesConfig:
    """Frames of an episode that are shown to the model."""

    camera: str = ""
    """Which camera; empty takes the only one that the episodes have."""
    also: tuple[str, ...] = ()
    """Further cameras, whose frames of the same moments are shown beside; not for backends `clip` and `head`."""
    count: Positive = 8
    """Frames shown of an episode, evenly spaced, the last one always among them."""
    span: NonNegative = 0
    """For `success`: show a short clip, the last so many steps. 0: the whole episode."""
    captions: Literal["number", "step"] = "number"
    """Caption of each frame if there are several: its number, or also its step in the episode. Steps would give away
    the order, so `progress` has numbers only."""
    longest_side: Annotated[int, Field(ge=16, le=4096)] = 384
    """Larger frames are reduced to this [px]; smaller ones are sent as they are."""


@dataclass(frozen=True, config=STRICT)
class ExamplesConfig:
    """For `kind=progress`: successful episodes that are shown before the query, with their progress (few-shot GVL)."""

    store: str = ""
    """Store, or run, that has them; they must be of the same task."""
    count: NonNegative = 0
    """How many: the first successes of that store, `frames.count` frames of each. Their progress is their time."""


@dataclass(frozen=True, config=STRICT)
class LabelConfig:
    """One labeller."""

    backend: str = "openai"
    """`openai`: a server, see `endpoint`. `qwen`: a Qwen-VL model on this machine, see `local`. `clip`: a CLIP or
    SigLIP model on this machine; for scores. `head`: what `robot-rl label train` made, see `head`; for success or
    progress. `process`: a program of yours, see `process`. Any other name is that of a labeller of an installed
    package, see docs/add/labeller.md."""
    kind: Literal["success", "progress", "preference", "score"] = "success"
    """`success`: probability that an episode succeeded. `progress`: how far it was at each frame. `preference`: which
    of two moments is closer to the goal. `score`: how near each frame is to the goal in texts or pictures."""
    answer: Literal["structured", "logprobs"] = "structured"
    """`structured`: the model writes its answer as JSON. `logprobs`: the probabilities of the tokens True and False;
    finer, if the server returns them. For `success`, and for `progress` by a query about each beginning of the episode
    (TOPReward, 2026), `frames.count` of them."""
    head: str = ""
    """File of a head, for `backend=head`."""
    prompt: str = ""
    """A YAML file with a prompt of your own; empty takes the built-in one."""
    prompt_version: NonNegative = 0
    """Version of the built-in prompt; 0 takes the newest. A training keeps the one of its labels."""
    task: str = ""
    """Instruction of the robot, in a sentence; empty takes the instruction of the store's task."""
    pairs: Positive = 200
    """For `preference`: how many pairs."""
    pair_ends: Fraction = 0.5
    """For `preference`: share of the moments that are the last of an episode. What it came to is decided there, and
    of moments drawn evenly few are; the others are drawn so."""
    segment: NonNegative = 0
    """For `preference`: steps that a segment spans, of which `frames.count` evenly spaced frames are shown. 0: single
    moments are compared."""
    seed: NonNegative = 0
    """For `preference`: which pairs."""
    endpoint: EndpointConfig = Field(default_factory=EndpointConfig)
    local: LocalConfig = Field(default_factory=LocalConfig)
    process: ProcessConfig = Field(default_factory=ProcessConfig)
    score: ScoreConfig = Field(default_factory=ScoreConfig)
    cascade: CascadeConfig = Field(default_factory=CascadeConfig)
    frames: FramesConfig = Field(default_factory=FramesConfig)
    examples: ExamplesConfig = Field(default_factory=ExamplesConfig)
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
