"""Benchmark of the episode store: cost of recording in the control loop, and time of reading; `robot-rl bench data`."""

from __future__ import annotations

import io
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

from robot_rl.data.schema import IMAGE_PREFIX, Episode, EpisodeBuilder, Source, Step
from robot_rl.data.store.codec import encode
from robot_rl.data.store.journal import JournalWriter
from robot_rl.data.store.layout import EPISODES, file_name
from robot_rl.data.store.store import EpisodeStore

CAMERAS, SIZE, STEPS = 2, (128, 128, 3), 100
PERIOD = 0.02
"""Between steps while recording [s]: five times as fast as a robot at 10 Hz."""
MANY = (10, 100, 1000)


def bench_data() -> dict[str, Any]:
    """Measure the episode store on the disk of the temporary directory; images of 128 x 128 with sensor noise."""
    with tempfile.TemporaryDirectory(prefix="robot_rl-bench-") as folder:
        episode, steps = noisy_episode("episode-0", STEPS, CAMERAS, SIZE)
        return {
            "frame": f"{SIZE[0]} x {SIZE[1]} x {SIZE[2]} uint8, {CAMERAS} cameras, {STEPS} steps",
            "record": _record(Path(folder, "record"), episode, steps),
            "read": _read(Path(folder, "read"), episode),
            "open": _open(Path(folder, "open")),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }


def _record(path: Path, episode: Episode, steps: list[Step]) -> dict[str, float]:
    """Time the call of the control loop, the thread of the journal, and the end of the episode [ms]."""
    called, appended, peak = [], [], 0
    with EpisodeStore.create(path) as store:
        for number in range(5):
            store.begin(f"episode-{number}")
            due = time.perf_counter()
            for step in steps:
                due += PERIOD
                renamed = replace(step, episode_id=f"episode-{number}")
                called.append(_seconds(partial(store.record, renamed)))
                time.sleep(max(0.0, due - time.perf_counter()))
            whole = replace(episode, episode_id=f"episode-{number}")
            appended.append(_seconds(partial(store.append, whole)))
            peak = max(peak, store.load.queue_peak)
    journal = JournalWriter(path / "bench.journal", "episode-0", {})
    written = [_seconds(partial(journal.write, step)) for step in steps]
    journal.close()
    return {
        "step_in_control_loop_p50_ms": 1e3 * float(np.percentile(called, 50)),
        "step_in_control_loop_p99_ms": 1e3 * float(np.percentile(called, 99)),
        "frame_in_control_loop_p50_ms": 1e3 * float(np.percentile(called, 50)) / CAMERAS,
        "frame_in_control_loop_p99_ms": 1e3 * float(np.percentile(called, 99)) / CAMERAS,
        "journal_frame_p50_ms": 1e3 * float(np.percentile(written, 50)) / CAMERAS,
        "journal_frame_p99_ms": 1e3 * float(np.percentile(written, 99)) / CAMERAS,
        "end_of_episode_ms": 1e3 * min(appended),
        "end_of_episode_frame_ms": 1e3 * min(appended) / (CAMERAS * (STEPS + 1)),
        "queue_peak_steps": peak,
    }


def _read(path: Path, episode: Episode) -> dict[str, float]:
    """Compare bulk reading with that of zarr, for the same images in the same chunks and codec on the same disk."""
    megabytes = sum(column.nbytes for column in episode.observations.values()) / 1e6
    with EpisodeStore.create(path) as store:
        store.append(episode)
        group = zarr.create_group(str(path / "plain"))
        images = {key: column for key, column in episode.observations.items() if key.startswith(IMAGE_PREFIX)}
        for key, frames in images.items():
            codec = BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle")
            group.create_array(key, data=frames, chunks=(10, *frames.shape[1:]), filters=None, compressors=codec)
        plain, ours = [], []
        for _ in range(10):  # alternately, so that both get the quiet moments
            plain.append(_seconds(lambda: [np.asarray(group[key][...]) for key in images]))  # type: ignore[index]
            ours.append(_seconds(lambda: store.read("episode-0")))
        compressed = store.size("episode-0") / 1e6
    image_megabytes = sum(column.nbytes for column in images.values()) / 1e6
    return {
        "bulk_mb_per_s": megabytes / min(ours),
        "zarr_mb_per_s": image_megabytes / min(plain),
        "of_zarr": (megabytes / min(ours)) / (image_megabytes / min(plain)),
        "compression": megabytes / compressed,
    }


def _open(path: Path) -> dict[str, float]:
    """Time the opening of stores of many episodes [s], and count the bytes read for it."""
    figures = {}
    with EpisodeStore.create(path):
        pass
    made, content = 0, encode(noisy_episode("episode-000000", 20, 1, (32, 32, 3))[0])
    for count in MANY:
        for number in range(made, count):
            (path / EPISODES / file_name(number)).write_bytes(with_id(content, f"episode-{number:06d}"))
        made = count
        before = _bytes_read()
        figures[f"{count}_episodes_s"] = min(_seconds(lambda: EpisodeStore.open(path)) for _ in range(3))
        figures[f"{count}_episodes_kb_read"] = (_bytes_read() - before) / 3 / 1e3
    figures["store_kb"] = sum(file.stat().st_size for file in (path / EPISODES).iterdir()) / 1e3
    return figures


def noisy_episode(name: str, length: int, cameras: int, size: tuple[int, int, int]) -> tuple[Episode, list[Step]]:
    """Make an episode of smooth pictures with the noise of a sensor (standard deviation 2)."""
    rng = np.random.default_rng(0)
    height, width, channels = size
    scene = np.add.outer(np.linspace(40, 140, height), np.linspace(0, 80, width))[..., None] + 10 * np.arange(channels)
    builder = EpisodeBuilder(name, {"task": "bench", "success": True})
    steps = []

    def observe(t: int) -> dict[str, np.ndarray]:
        noisy = [np.clip(np.roll(scene, t + c, 1) + rng.normal(0, 2, size), 0, 255) for c in range(cameras)]
        images = {f"images/camera_{c}": frame.astype(np.uint8) for c, frame in enumerate(noisy)}
        return {**images, "state/tcp_pose": rng.normal(size=6).astype(np.float32)}

    for t in range(length):
        action = rng.uniform(-1, 1, 6).astype(np.float32)
        last = t == length - 1
        stamp = t * 100_000_000
        step = Step(observe(t), action, action, Source.POLICY, 0.0, "task", last, False, stamp, stamp, name, t)
        builder.add(step)
        steps.append(step)
    return builder.finish(observe(length), length * 100_000_000), steps


def with_id(content: bytes, episode_id: str) -> bytes:
    """Return the file of an episode under another id; encoding a thousand would take a quarter of a minute."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"episode-000000", episode_id.encode()) if name == "zarr.json" else data)
    return made.getvalue()


def _bytes_read() -> int:
    """Return the bytes that this process has read by system calls."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
