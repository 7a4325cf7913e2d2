"""How close the learner comes to a GPU: updates in the plain way, compiled and recorded as a graph; and its encoder."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from robot_rl.bench.workload import Workload
from robot_rl.config.components import EncoderConfig, EngineConfig
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.perception import FrozenFeatures

GEMM_SIZE = 4096
CALLS = 20
"""Updates in a measurement."""
ENGINES = {
    "eager": EngineConfig(capture=False),
    "captured": EngineConfig(),
    "captured_bfloat16": EngineConfig(precision="bfloat16"),
    "captured_compiled_bfloat16": EngineConfig(precision="bfloat16", compile=True),
}


def bench_on_gpu(cases: dict[str, Workload], rounds: int, engines: tuple[str, ...] = tuple(ENGINES)) -> dict[str, Any]:
    """Time learner calls and matrix products in turn, on the current CUDA device.

    Args:
        cases: The work of a call.
        rounds: Measurements of each, of `CALLS` calls.
        engines: Of `ENGINES`.

    Returns:
        `device`, `torch`, `cuda`, `gemm_gflops` (float32 as the engine runs it), and for each case `bound_ms` and for
        each engine `best_ms`, `median_ms` [wall clock], `share` = bound_ms / best_ms, `times_eager`, and `busy`: the
        share of the wall clock in which a kernel ran, by the profiler.
    """
    square = torch.randn(GEMM_SIZE, GEMM_SIZE, device="cuda")
    gemm_rate = 2 * GEMM_SIZE**3 / min(_seconds(partial(torch.mm, square, square), 1) for _ in range(10))
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gemm_gflops": gemm_rate / 1e9,
    }
    for case, work in cases.items():
        bound, batch = work.flops / gemm_rate, work.minibatches("cuda")
        updates = {name: partial(Engine(work.learner("cuda"), ENGINES[name]).update, batch) for name in engines}
        times: dict[str, list[float]] = {name: [] for name in engines}
        for update in updates.values():
            _seconds(update, CALLS)  # compiles, records
        for _ in range(rounds):
            for name, update in updates.items():
                times[name].append(_seconds(update, CALLS))
        report[case] = {"gflop": work.flops / 1e9, "bound_ms": bound * 1e3}
        for name, update in updates.items():
            best = min(times[name])
            report[case][name] = {
                "best_ms": best * 1e3,
                "median_ms": statistics.median(times[name]) * 1e3,
                "share": bound / best,
                "times_eager": min(times["eager"]) / best,
                "busy": _busy(update),
            }
    return report


def bench_encoding(config: EncoderConfig, rounds: int) -> dict[str, dict[str, float]]:
    """Time what the frozen encoder makes of the frames of one observation, on this thread and on the GPU.

    Returns:
        For `cpu` and `cuda`: medians of `act_ms`, from frames to what a policy acts on, and `replay_ms`, from the same
        frames to what replay stores beyond that [wall clock], both from and to the memory of the CPU.
    """
    torch.set_num_threads(1)
    size = config.image_size
    frames = np.random.default_rng(0).integers(0, 256, (len(config.cameras), size, size, 3), np.uint8)
    report = {}
    for device in ("cpu", "cuda"):
        encoder = FrozenFeatures(config, device)
        view = encoder.view(frames)
        report[device] = {
            "act_ms": _median_ms(partial(encoder.view, frames), rounds),
            "replay_ms": _median_ms(partial(encoder.encode, frames, view), rounds),
        }
    return report


def _median_ms(work: Callable[[], object], rounds: int) -> float:
    return 1e3 * statistics.median(_seconds(work, 1) for _ in range(rounds))


def _seconds(work: Callable[[], object], calls: int) -> float:
    """Measure the wall clock of one of several calls, from an idle device to an idle device."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def _busy(work: Callable[[], object]) -> float:
    """Measure the share of the time from the first kernel's start to the last one's end in which a kernel ran."""
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profile:
        _seconds(work, CALLS)
    spans = sorted(
        (event.time_range.start, event.time_range.end) for event in profile.events() if event.device_type.name == "CUDA"
    )
    ran, until = 0.0, spans[0][0]
    for start, end in spans:
        ran += max(0.0, end - max(start, until))
        until = max(until, end)
    return ran / (until - spans[0][0])
