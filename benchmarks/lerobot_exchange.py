"""LeRobot's own package and robot_rl exchange datasets, with video, in both directions.

    python benchmarks/lerobot_exchange.py --python PYTHON_WITH_LEROBOT

robot_rl and lerobot need other versions of the same packages, so lerobot lives in an interpreter of its own. For
lerobot 0.4.4:

    python3.11 -m venv lerobot && lerobot/bin/pip install lerobot==0.4.4

Demonstrations are recorded in simulation. Export: lerobot's loader reads what `robot-rl data export` wrote. Import:
lerobot's writer makes datasets of the same steps, with several episodes in a file, and `robot-rl data import` reads
them. Numbers must be equal, PNG too. Videos lose detail: the PSNR is given, and how far our frames are from those of
lerobot's loader for the same file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.cli.main import main as robot_rl
from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.data.store.store import EpisodeStore

CODECS = ("png", "h264", "hevc", "libsvtav1")
IMAGES = ("png", "video")
SAME_FRAME = 3
"""Largest difference between two decoders' frames of one file; conversions from YUV round in other ways."""


class ForeignError(Exception):
    """lerobot's side failed; the message is the end of what it printed."""


class Foreign:
    """The interpreter that has lerobot."""

    def __init__(self, python: str, home: Path) -> None:
        self._python, self._env = python, {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home)}

    def __call__(self, *arguments: Any) -> str:
        """Run `lerobot_inside.py` with these arguments; return what it printed."""
        script = Path(__file__).with_name("lerobot_inside.py")
        command = [self._python, str(script), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._env)
        if done.returncode:
            raise ForeignError(done.stderr[-3000:])
        return done.stdout


def call(*arguments: Any) -> None:
    """Run a command of ours."""
    if code := robot_rl([str(argument) for argument in arguments]):
        sys.exit(f"robot-rl {' '.join(map(str, arguments))} ended with {code}")


def joined(episodes: list[Episode], column: Any) -> np.ndarray:
    """Return a column of all episodes without what belongs to the observation after the last step."""
    return np.concatenate([column(episode)[: len(episode)] for episode in episodes])


def psnr(left: np.ndarray, right: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio of uint8 pictures [dB]; infinite if they are equal."""
    error = float(np.mean((left.astype(np.float64) - right) ** 2))
    return float("inf") if error == 0.0 else 10 * np.log10(255.0**2 / error)


def read_store(path: Path) -> list[Episode]:
    """Return all episodes of a store."""
    with EpisodeStore.open(path) as store:
        return list(store.episodes())


def frames_of(foreign: Foreign, dataset: Path, out: Path) -> dict[str, np.ndarray]:
    """Return what lerobot's loader reads; pictures as uint8 (frames, height, width, channels)."""
    foreign("read", dataset, out)
    columns = dict(np.load(out))
    for key in [key for key in columns if ".images." in key]:
        columns[key] = np.round(np.moveaxis(columns[key], 1, -1) * 255).astype(np.uint8)
    return columns


def export_to_lerobot(foreign: Foreign, store: Path, images: str, folder: Path) -> list[str]:
    """Export, have lerobot read it, compare; return what differs, and print the figures."""
    episodes, out = read_store(store), folder / f"exported-{images}"
    begun = time.monotonic()
    call("data", "export", store, "--out", out, "--images", images)
    ours = time.monotonic() - begun
    begun = time.monotonic()
    read = frames_of(foreign, out, folder / "read.npz")
    theirs = time.monotonic() - begun
    wrong = []
    expected = {
        "action": joined(episodes, lambda e: e.action),
        "next.reward": joined(episodes, lambda e: e.reward),
        "next.terminated": joined(episodes, lambda e: e.terminated),
        "next.truncated": joined(episodes, lambda e: e.truncated),
    }
    wrong += [name for name, column in expected.items() if not np.array_equal(read[name].reshape(column.shape), column)]
    names = json.loads((out / "meta/info.json").read_text())["features"]["observation.state"]["names"]
    for key in [key for key in episodes[0].observations if not key.startswith(IMAGE_PREFIX)]:
        column = joined(episodes, lambda e, key=key: e.observations[key]).reshape(len(read["index"]), -1)
        place = [number for number, name in enumerate(names) if name.startswith(f"{key}.") or name == key]
        if not np.array_equal(read["observation.state"][:, place], column.astype(np.float32)):
            wrong.append(key)
    worst = float("inf")
    for key in [key for key in episodes[0].observations if key.startswith(IMAGE_PREFIX)]:
        frames = joined(episodes, lambda e, key=key: e.observations[key])
        found = read[f"observation.images.{key.removeprefix(IMAGE_PREFIX)}"]
        worst = min(worst, min(psnr(one, other) for one, other in zip(frames, found, strict=True)))
    wrong += ["images"] if images == "png" and worst != float("inf") else []
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 1e6
    print(
        f"export {images:<10} {len(read['index'])} frames, {size:.2f} MB, {ours:.1f} s; lerobot reads it in "
        f"{theirs:.1f} s; worst frame {worst:.1f} dB; differing: {', '.join(wrong) or 'nothing'}",
        flush=True,
    )
    return wrong


def import_from_lerobot(foreign: Foreign, store: Path, codec: str, folder: Path) -> list[str]:
    """Have lerobot write a dataset, import it, compare; return what differs, and print the figures."""
    episodes, dataset, out = read_store(store), folder / f"written-{codec}", folder / f"imported-{codec}"
    states = [key for key in episodes[0].observations if not key.startswith(IMAGE_PREFIX)]
    cameras = [key for key in episodes[0].observations if key.startswith(IMAGE_PREFIX)]
    truth: dict[str, Any] = {
        "action": joined(episodes, lambda e: e.action),
        "next.reward": joined(episodes, lambda e: e.reward)[:, None],
        "fps": 10,
        "lengths": [len(episode) for episode in episodes],
    }
    for key in states:
        column = joined(episodes, lambda e, key=key: e.observations[key])
        truth[f"observation.{key.removeprefix('state/')}"] = column.reshape(len(column), -1).astype(np.float32)
    for key in cameras:
        truth[f"observation.images.{key.removeprefix(IMAGE_PREFIX)}"] = joined(
            episodes, lambda e, key=key: e.observations[key]
        )
    np.savez(folder / "truth.npz", **truth)
    begun = time.monotonic()
    foreign("write", folder / "truth.npz", dataset, codec)
    theirs = time.monotonic() - begun
    try:
        by_lerobot = frames_of(foreign, dataset, folder / "read.npz")
    except ForeignError as error:
        errors = [line for line in str(error).splitlines() if line.startswith("lerobot.")]
        print(f"lerobot's own loader cannot read what its writer wrote: {' '.join(errors)[:200]}")
        by_lerobot = {}
    begun = time.monotonic()
    call("data", "import", dataset, "--out", out)
    ours = time.monotonic() - begun
    call("data", "verify", out, "--jobs", "1")
    found, wrong = read_store(out), []
    if [len(episode) for episode in found] != truth["lengths"]:
        return ["lengths"]
    wrong += [] if np.array_equal(joined(found, lambda e: e.action), truth["action"]) else ["action"]
    wrong += [] if np.array_equal(joined(found, lambda e: e.reward), truth["next.reward"][:, 0]) else ["reward"]
    for key in states:
        column = joined(found, lambda e, key=key: e.observations[key])
        wrong += [] if np.array_equal(column, truth[f"observation.{key.removeprefix('state/')}"]) else [key]
    worst, apart = float("inf"), 0
    for key in cameras:
        name = f"observation.images.{key.removeprefix(IMAGE_PREFIX)}"
        frames = joined(found, lambda e, key=key: e.observations[key])
        worst = min(worst, min(psnr(one, other) for one, other in zip(truth[name], frames, strict=True)))
        if by_lerobot:
            apart = max(apart, int(np.abs(frames.astype(int) - by_lerobot[name]).max()))
    wrong += ["images"] if codec == "png" and worst != float("inf") else []
    wrong += ["frames"] if apart > SAME_FRAME else []
    own = f"at most {apart} of 255 from lerobot's own frames" if by_lerobot else "not compared with lerobot's own"
    files = len(list((dataset / "videos").rglob("*.mp4"))) if (dataset / "videos").is_dir() else 0
    print(
        f"import {codec:<10} {len(truth['action'])} frames of {len(found)} episodes in {files} videos, written in "
        f"{theirs:.1f} s, imported in {ours:.1f} s; worst frame {worst:.1f} dB; {own}; "
        f"differing: {', '.join(wrong) or 'nothing'}",
        flush=True,
    )
    return wrong


def main() -> int:
    """Record, exchange and compare; return 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", default=os.environ.get("ROBOT_RL_LEROBOT_PYTHON"), help="interpreter that has lerobot"
    )
    parser.add_argument("--episodes", type=int, default=5, help="demonstrations (default: 5)")
    parser.add_argument("--codecs", nargs="*", default=CODECS, choices=CODECS, help="of the imports (default: all)")
    parser.add_argument("--images", nargs="*", default=IMAGES, choices=IMAGES, help="of the exports (default: both)")
    arguments = parser.parse_args()
    if arguments.python is None:
        parser.error("--python PYTHON is needed: an interpreter that has lerobot")
    with tempfile.TemporaryDirectory() as scratch:
        folder, store = Path(scratch), Path(scratch) / "store"
        foreign = Foreign(arguments.python, folder / "home")
        print("lerobot's side:", foreign("versions").strip(), flush=True)
        recorded = ["--obs", "pixels", "--episodes", arguments.episodes]
        call("demo", "peg_insert", "--out", store, *recorded)
        wrong = [what for images in arguments.images for what in export_to_lerobot(foreign, store, images, folder)]
        wrong += [what for codec in arguments.codecs for what in import_from_lerobot(foreign, store, codec, folder)]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
