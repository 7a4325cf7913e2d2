"""A model of the Qwen-VL family on this machine, as a `ChatModel`: next-token probabilities, or text.

It puts tokens and images together itself, because the joint processors of transformers want torchvision for videos.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from robot_rl.config.labelling import LocalConfig
from robot_rl.errors import ConfigError
from robot_rl.reward.budget import Budget
from robot_rl.reward.vlm.chat_model import Completion, Part, Turn
from robot_rl.reward.vlm.local_weights import dtype_of, loaded, name_of, require_transformers, revision_of

ANSWER = "\nAnswer:"
"""End of the prompt before a choice, as plain text: TOPReward (2026) found that this works better than the format of a
conversation."""


class LocalChat:
    """A `ChatModel` that computes here, one turn at a time.

    Args:
        config: Which model, and where it computes.
        budget: What may be used.

    Raises:
        ConfigError: if the model is not there, or is not of that family.
    """

    concurrency = 1

    def __init__(self, config: LocalConfig, budget: Budget) -> None:
        require_transformers("backend=qwen")
        from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer

        self._config, self._budget = config, budget
        self._model = loaded(config, AutoModelForImageTextToText.from_pretrained).eval()
        self._model.to(config.device, dtype_of(config))
        facts = self._model.config
        marks = [getattr(facts, f"{name}_token_id", None) for name in ("vision_start", "image", "vision_end")]
        known = [int(mark) for mark in marks if mark is not None]
        if len(known) != len(marks):
            raise ConfigError(f"model {config.model}: is not of the Qwen-VL family; serve it, and use backend=openai")
        self._start, self._pad, self._end = known
        self._processor = loaded(config, AutoImageProcessor.from_pretrained)
        self._tokenizer = loaded(config, AutoTokenizer.from_pretrained)
        self._takes_types = "mm_token_type_ids" in inspect.signature(self._model.forward).parameters
        self._spellings: dict[str, list[int]] = {}
        self._revision, self._lock = revision_of(self._model), threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The weights, and the settings of the generation."""
        config = self._config
        return {
            "backend": "qwen",
            "model": name_of(config),
            "revision": self._revision,
            "precision": config.precision,
            "max_reply_tokens": config.max_reply_tokens,
        }

    def complete(self, turn: Turn) -> Completion:
        """Return the most probable reply."""
        started = time.monotonic()
        with self._lock, self._budget.purchase() as bought:
            done = self._decide(turn) if turn.choices else self._reply(turn)
            bought.tokens = done.prompt_tokens + done.reply_tokens
        return Completion(**{**vars(done), "latency": time.monotonic() - started})

    def close(self) -> None:
        """Do nothing: it holds only memory."""

    @torch.inference_mode()
    def _decide(self, turn: Turn) -> Completion:
        """Return the log-probabilities of all spellings of the choices, and of the most probable token."""
        inputs = self._inputs((*turn.parts, ANSWER))
        logits = self._model(**inputs, logits_to_keep=1).logits[0, -1].float()
        logs = logits.log_softmax(-1).cpu()
        likeliest = int(logs.argmax())
        tokens = sorted({likeliest, *(token for choice in turn.choices for token in self._spellings_of(choice))})
        first = tuple((str(self._tokenizer.decode([token])), float(logs[token])) for token in tokens)
        return Completion(
            self._tokenizer.decode([likeliest]), first_token=first, prompt_tokens=inputs["input_ids"].shape[1]
        )

    @torch.inference_mode()
    def _reply(self, turn: Turn) -> Completion:
        parts = ("<|im_start|>user\n", *turn.parts, "<|im_end|>\n<|im_start|>assistant\n")
        inputs = self._inputs(parts)
        prompt_tokens = inputs["input_ids"].shape[1]
        most = self._config.max_reply_tokens
        ends = self._tokenizer.convert_tokens_to_ids("<|im_end|>")
        out = self._model.generate(
            **inputs, max_new_tokens=most, do_sample=False, eos_token_id=ends, pad_token_id=ends
        )[0, prompt_tokens:]
        text = self._tokenizer.decode(out, skip_special_tokens=True)
        cut = len(out) >= most and int(out[-1]) != ends
        return Completion(text, cut=cut, prompt_tokens=prompt_tokens, reply_tokens=len(out))

    def _inputs(self, parts: tuple[Part, ...]) -> dict[str, Tensor]:
        """Return the tokens of text and places of images, in their order, and the images' pixels."""
        pictures = [Image.fromarray(part) for part in parts if not isinstance(part, str)]
        inputs: dict[str, Tensor] = {}
        sizes: list[int] = []
        if pictures:
            seen = self._processor(images=pictures, return_tensors="pt")
            sizes = (seen["image_grid_thw"].prod(-1) // self._processor.merge_size**2).tolist()
            inputs["pixel_values"] = seen["pixel_values"].to(dtype_of(self._config))
            inputs["image_grid_thw"] = seen["image_grid_thw"]
        tokens: list[int] = []
        for part in parts:
            if isinstance(part, str):
                tokens += self._tokenizer(part, add_special_tokens=False)["input_ids"]
            else:
                tokens += [self._start, *[self._pad] * sizes.pop(0), self._end]
        row = torch.tensor([tokens])
        inputs |= {"input_ids": row, "attention_mask": torch.ones_like(row)}
        if self._takes_types:
            inputs["mm_token_type_ids"] = row.eq(self._pad).int()
        return {name: value.to(self._config.device) for name, value in inputs.items()}

    def _spellings_of(self, choice: str) -> list[int]:
        """Return the tokens that spell this choice, with any case and blanks."""
        if choice not in self._spellings:
            every = range(len(self._tokenizer))
            self._spellings[choice] = [
                t for t in every if self._tokenizer.decode([t]).strip().lower() == choice.lower()
            ]  # once for a choice
            if not self._spellings[choice]:
                raise ConfigError(f"model {self._config.model}: {choice!r} is no token of it; use answer=structured")
        return self._spellings[choice]
