"""Benchmark of the learner: time of an update against the time of its matrix products alone on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch

from robot_rl.bench.learner_cuda import bench_encoding, bench_on_gpu
from robot_rl.bench.workload import ENCODER, Workload, cached_features
from robot_rl.config.components import EngineConfig
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.networks.encoders import make_encoder

GEMM_SIZES = (256, 512, 1024)
WARM_UPS = 5
ENCODED_AT_ONCE = 32
"""Images in a batch of the encoder, when the cost of encoding inside the update is measured."""
ENGINES = {
    "eager": EngineConfig(),
    "compiled": EngineConfig(compile=True),
    "bfloat16": EngineConfig(precision="bfloat16"),
    "compiled_bfloat16": EngineConfig(compile=True, precision="bfloat16"),
}
CASES = {
    "state_2": Workload(),
    "state_10": Workload(critics=10),
    "pixels": Workload(images=cached_features(ENCODER)),
}
"""State with 2 and with 10 critics; cached features of two cameras, with 2 critics."""


def bench_learner(
    *, cases: tuple[str, ...] = tuple(CASES), engines: tuple[str, ...] = tuple(ENGINES), rounds: int = 40
) -> dict[str, Any]:
    """Time learner calls and matrix products in turn, in one thread, each engine in a process of its own.

    A call is 4 critic updates and one of actor and temperature: batch 256, state 24, 7 continuous actions, hidden
    layers 256 and 256, 2 critics in the target; from pixels two cameras, features of 64 channels on 4 by 4 cells.

    Args:
        cases: Of `CASES`.
        engines: Of `ENGINES`. Compiling takes half a minute each.
        rounds: Calls of each.

    Returns:
        `threads`, `gemm_size` (n of 256, 512, 1024 with the best fp32 rate of n^3 products), and for each case `gflop`
        that the call needs, `bound_ms` (median time of that many operations in such products), and for each engine
        `best_ms` and `median_ms` [CPU time] and `share`: the median of the ratios of the time of as many operations in
        such products, taken right beside each call so that a machine that slows down slows both, to the call's. For
        pixels also `encoder_in_update_ms`: the eager call and the frozen encoder's time for the 4096
        images that it would see, at its time per image in batches of 32; and `times_faster`. Where there is a GPU also
        `cuda`, see `bench_on_gpu`, with `encoding`, see `bench_encoding`.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:  # as a training has one
        size = fresh.submit(_fastest_square).result()
        found = {
            (case, engine): fresh.submit(_measure, case, engine, rounds, size).result()
            for case in cases
            for engine in engines
        }
        encoding = fresh.submit(_measure_encoder).result() if "pixels" in cases else 0.0
    report: dict[str, Any] = {"threads": 1, "gemm_size": size}
    for case in cases:
        bound = statistics.median(bound for engine in engines for _, bound in found[case, engine])
        report[case] = {"gflop": CASES[case].flops / 1e9, "bound_ms": bound * 1e3}
        for engine in engines:
            calls = [call for call, _ in found[case, engine]]
            report[case][engine] = {
                "best_ms": min(calls) * 1e3,
                "median_ms": statistics.median(calls) * 1e3,
                "share": statistics.median(bound / call for call, bound in found[case, engine]),
            }
    if torch.cuda.is_available():
        report["cuda"] = bench_on_gpu({case: CASES[case] for case in cases}, rounds)
        if "pixels" in cases:
            report["cuda"]["encoding"] = bench_encoding(ENCODER, rounds)
    if "pixels" in cases:
        row, images = report["pixels"], 2 * len(ENCODER.cameras) * CASES["pixels"].updates * CASES["pixels"].batch
        cached = row[engines[0]]["best_ms"]
        row["encoder_in_update_ms"] = cached + encoding * images * 1e3
        row["times_faster"] = row["encoder_in_update_ms"] / cached
    return report


def _measure(case: str, engine: str, rounds: int, size: int) -> list[tuple[float, float]]:
    """Time calls, each with that of as many operations in products of matrices of this size [s]."""
    torch.set_num_threads(1)
    work, square = CASES[case], torch.randn(size, size)
    update = partial(Engine(work.learner(), ENGINES[engine]).update, work.minibatches())
    for _ in range(WARM_UPS):
        update()  # compiles
    flops = work.flops
    return [(_seconds(update), _bound(flops, square)) for _ in range(rounds)]


def _measure_encoder() -> float:
    """Time the frozen encoder for an image, in float32 as in the update [s]."""
    torch.set_num_threads(1)
    encoder = make_encoder(ENCODER.name)
    images = torch.rand(ENCODED_AT_ONCE, 3, ENCODER.image_size, ENCODER.image_size) * 255
    images = images.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        return min(_seconds(partial(encoder, images)) for _ in range(5)) / ENCODED_AT_ONCE


def _fastest_square() -> int:
    """Return the size whose products run at the best rate."""
    torch.set_num_threads(1)
    squares = {n: torch.randn(n, n) for n in GEMM_SIZES}
    work = 2 * max(GEMM_SIZES) ** 3
    times = {n: min(_bound(work, square) for _ in range(5)) for n, square in squares.items()}
    return min(times, key=lambda n: times[n])


def _bound(flops: float, square: torch.Tensor) -> float:
    """Time so many operations in products of this matrix with itself [s]."""
    operations = 2 * len(square) ** 3
    repeats = max(1, round(flops / operations))

    def products() -> None:
        for _ in range(repeats):
            torch.mm(square, square)

    return _seconds(products) * flops / (repeats * operations)


def _seconds(work: Callable[[], object]) -> float:
    """Measure CPU time of this process, which other processes on the same cores disturb less than the wall clock."""
    start = time.process_time()
    work()
    return time.process_time() - start
