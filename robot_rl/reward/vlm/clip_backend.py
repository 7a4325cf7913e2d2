"""Scores of frames by a local CLIP or SigLIP model: the similarity of each frame to a goal in text or pictures.

The similarity leaves out what any image of the scene shows, the baseline (VLM-RM, Rocamonde 2023). It is a score of a
state: it has no threshold at which a task is finished.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from robot_rl.config.labelling import LocalConfig, ScoreConfig
from robot_rl.errors import ConfigError
from robot_rl.reward.answer import ALONG, OFFSET, Answer, Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Query
from robot_rl.reward.vlm.local_weights import dtype_of, loaded, name_of, require_transformers, revision_of


def mean_direction(embeddings: Tensor) -> Tensor:
    """Return the unit vector along the mean of several embeddings, (P, D) -> (D,); each counts by its direction."""
    unit = embeddings / embeddings.norm(dim=-1, keepdim=True)
    mean = unit.mean(0)
    return mean / mean.norm()


def goal_baseline_reward(image: Tensor, goal: Tensor, baseline: Tensor | None, alpha: float) -> Tensor:
    """Return R = 1 - 1/2 |P_alpha (x - g)|^2 with P_alpha = alpha d d^T / |d|^2 + (1 - alpha) I and d = g - b.

    alpha = 0 is the cosine similarity with the goal; alpha = 1 measures only along the line from baseline to goal.
    It punishes going beyond the goal as much as falling short, so a baseline that is not below the goal turns it over.

    Args:
        image: x, unit vectors, shape (N, D).
        goal: g, a unit vector, shape (D,).
        baseline: b, a unit vector, shape (D,); None for alpha = 0.
        alpha: In [0, 1].

    Returns:
        R, shape (N,).

    Raises:
        ValueError: if alpha is above 0 and there is no baseline, or it equals the goal.
    """
    offset = image - goal
    if alpha > 0:
        if baseline is None or not (goal - baseline).any():
            raise ValueError("alpha above 0 needs a baseline that differs from the goal")
        direction = (goal - baseline) / (goal - baseline).norm()
        offset = alpha * (offset @ direction)[:, None] * direction + (1 - alpha) * offset
    return 1 - 0.5 * offset.square().sum(-1)


def offsets_from_goal(image: Tensor, goal: Tensor, baseline: Tensor) -> tuple[Tensor, Tensor]:
    """Return |x - g|^2, and its part along d = g - b, each (N,); R for any alpha follows, see `reward_of_offsets`."""
    offset, direction = image - goal, (goal - baseline) / (goal - baseline).norm()
    return offset.square().sum(-1), (offset @ direction).square()


class ClipBackend:
    """A `Backend` for scores.

    Args:
        local: Which model, and where it computes.
        score: Goals and baselines.
        budget: What may be used.

    Raises:
        ConfigError: if the model is not there, or the goals cannot be used.
    """

    concurrency = 1
    """It uses the whole processor, or the GPU, for one batch."""

    def __init__(self, local: LocalConfig, score: ScoreConfig, budget: Budget) -> None:
        if score.alpha > 0 and not score.baselines:
            raise ConfigError("score.alpha above 0 needs score.baselines: what any such image shows, without the goal")
        self._pictures = [_picture(Path(path)) for path in score.goal_images]  # before the model may be fetched
        require_transformers("backend=clip")
        from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

        self._local, self._score, self._budget = local, score, budget
        self._model = loaded(local, AutoModel.from_pretrained).eval().to(local.device, dtype_of(local))
        if not hasattr(self._model, "get_image_features") or not hasattr(self._model, "get_text_features"):
            raise ConfigError(f"model {local.model}: has no image and text embeddings; choose a CLIP or SigLIP model")
        self._processor = loaded(local, AutoImageProcessor.from_pretrained)
        self._tokenizer = loaded(local, AutoTokenizer.from_pretrained)
        self._revision = revision_of(self._model)
        self._directions: dict[str, tuple[Tensor, Tensor | None]] = {}
        self._lock = threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model, goals, baselines and how they are combined."""
        score = self._score
        return {
            "backend": "clip",
            "model": name_of(self._local),
            "revision": self._revision,
            "precision": self._local.precision,
            "goals": list(score.goals),
            "baselines": list(score.baselines),
            "goal_images": [_digest(picture) for picture in self._pictures],
            "alpha": score.alpha,
        }

    def answer(self, query: Query) -> Answer:
        """Return the scores of the frames of the query's clip."""
        started = time.monotonic()
        with self._lock, self._budget.purchase():
            goal, baseline = self._of_task(query.task)
            images = self.embed_images(query.clips[0].frames)
            values = goal_baseline_reward(images, goal, baseline, self._score.alpha)
        details: dict[str, Any] = {}
        if baseline is not None:
            whole, along = offsets_from_goal(images, goal, baseline)
            details = {OFFSET: whole.tolist(), ALONG: along.tolist()}
        return Answer(Status.OK, tuple(values.tolist()), details=details, latency=time.monotonic() - started)

    def close(self) -> None:
        """Do nothing: it holds only memory."""

    @torch.inference_mode()
    def embed_images(self, frames: np.ndarray | Sequence[np.ndarray]) -> Tensor:
        """Return unit vectors of frames, uint8 (N, height, width, 3) -> (N, D), on the CPU."""
        rows = []
        for first in range(0, len(frames), self._local.batch_size):
            pictures = [Image.fromarray(frame) for frame in frames[first : first + self._local.batch_size]]
            inputs = self._processor(images=pictures, return_tensors="pt")
            pixels = inputs["pixel_values"].to(self._local.device, dtype_of(self._local))
            rows.append(_pooled(self._model.get_image_features(pixel_values=pixels)))
        return _unit(torch.cat(rows))

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> Tensor:
        """Return unit vectors of phrases, (N, D), on the CPU."""
        # SigLIP was trained with phrases filled up to its full length, and CLIP does not mind.
        length = int(self._model.config.text_config.max_position_embeddings)
        inputs = self._tokenizer(
            list(texts), padding="max_length", truncation=True, max_length=length, return_tensors="pt"
        ).to(self._local.device)
        return _unit(_pooled(self._model.get_text_features(**inputs)))

    def _of_task(self, task: str) -> tuple[Tensor, Tensor | None]:
        """Return goal and baseline for a task; computed once."""
        if task not in self._directions:
            goals = [self.embed_images(self._pictures)] if self._pictures else []
            if self._score.goals or not self._pictures:
                goals.append(self.embed_texts(self._score.goals or (task,)))
            baseline = mean_direction(self.embed_texts(self._score.baselines)) if self._score.baselines else None
            goal = mean_direction(torch.cat(goals))
            if baseline is not None and torch.allclose(goal, baseline):
                raise ConfigError("score.baselines are the same as the goal; describe the scene without it")
            self._directions[task] = goal, baseline
        return self._directions[task]


def _pooled(output: Any) -> Tensor:
    """Return embeddings, (N, D); transformers gives them bare or, from version 5 on, among other things."""
    tensor: Tensor = output if isinstance(output, Tensor) else output.pooler_output
    return tensor.float().cpu()


def _unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True)


def _picture(path: Path) -> np.ndarray:
    try:
        return np.asarray(Image.open(path).convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise ConfigError(f"score.goal_images: cannot read {path}: {error}") from error


def _digest(picture: np.ndarray) -> str:
    return hashlib.sha256(picture.tobytes()).hexdigest()[:16]
