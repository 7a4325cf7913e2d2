"""Benchmark of replay: time to sample images against memcpy, and memory against storing every frame twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from robot_rl.data.replay.image_memory import image_memory
from robot_rl.data.replay.percept import ImageSpec

CAMERAS, SIZE, SHIFT = 2, 128, 4
BATCH = 256
SLOTS = 2000
FRAMES = ImageSpec("frames", (CAMERAS, SIZE, SIZE, 3), "uint8", maker="", size=SIZE, shift=SHIFT)
FEATURES = ImageSpec("features", (4, CAMERAS, 64, 4, 4), "float16", maker="", size=SIZE)
NAIVE_BYTES = 2 * CAMERAS * SIZE * SIZE * 3
"""Image memory of a transition that stores its own frames and those of the next observation."""


def bench_replay(*, rounds: int = 30) -> dict[str, Any]:
    """Time samples of 256 observations of two cameras, 128 by 128 pixels, in turn with copies of as many bytes.

    Args:
        rounds: Samples of each kind; the least time counts.

    Returns:
        For `frames` (randomly shifted) and `features` (one of four crops): `sample_ms`, `memcpy_ms` of the bytes that
        come out, `share` = memcpy_ms / sample_ms, `bytes_per_transition`, and `memory_ratio` to storing both
        observations' frames with every transition.
    """
    return {spec.kind: _time(spec, rounds) for spec in (FRAMES, FEATURES)}


def _time(spec: ImageSpec, rounds: int) -> dict[str, float]:
    memory, rng = image_memory(SLOTS, spec), np.random.default_rng(0)
    example = rng.integers(0, 256, spec.shape, np.uint8).astype(spec.dtype)
    for slot in range(SLOTS):  # so that the memory is really there
        memory.write(slot, example)
    out = memory.sample(rng.integers(SLOTS, size=BATCH), rng)
    target = np.empty_like(out)
    samples, copies = [], []
    for _ in range(rounds):
        samples.append(_seconds(partial(memory.sample, rng.integers(SLOTS, size=BATCH), rng)))
        copies.append(_seconds(partial(np.copyto, target, out)))
    kept = memory.nbytes // SLOTS  # the last observation of each episode is left out
    return {
        "sample_ms": min(samples) * 1e3,
        "memcpy_ms": min(copies) * 1e3,
        "share": min(copies) / min(samples),
        "bytes_per_transition": kept,
        "memory_ratio": kept / NAIVE_BYTES,
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
