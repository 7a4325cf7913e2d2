"""How far can a success head on the bundled encoder be trusted, in the light it was trained in and in another?

    python benchmarks/label_protocol.py --out runs/protocol

Records 200 episodes of `peg_insert` with mixed outcome (a third succeeds, a third comes near), and the same again with
light, colours and camera poses varied twice as widely; trains a head on half of the first ones, calibrates it on half
of the others, and reports what is left, in both lights, by the commands that users have. Beside it the rows that tell
what such a figure is worth: the same with random weights, the distance of the last picture from the mean one of
success, and the number of steps. What is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from reward_classifier import record

from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.data.store import EpisodeStore
from robot_rl.reward.figures import Figure, roc_auc, with_interval
from robot_rl.reward.head_backend import read_head
from robot_rl.reward.label_store import LabelStore

SPLITS = {"usual": 1.0, "shifted": 2.0}
"""How many times as widely as in training looks vary."""
ENCODERS = ("bundled", "random")
FIGURES = ("roc_auc", "precision", "recall", "false_positives_per_100_failures", "near_miss_false_positive_rate")


def prepare(out: Path, episodes: int, share: float, camera: str) -> None:
    """Episodes, heads, labels and calibrations that are not there yet."""
    for split, looks in SPLITS.items():
        if not (out / split).exists():
            record(out / split, episodes, looks)
    for encoder in ENCODERS:
        head = out / f"{encoder}.pt"
        if not head.exists():
            which = ("--encoder", encoder, "--camera", camera, "--share", share)
            _robot_rl("label", "train", out / "usual", *which, "--out", head)
        for split in SPLITS:
            settings = ("backend=head", f"head={head}", f"frames.camera={camera}")
            flags = [word for setting in settings for word in ("--set", setting)]
            _robot_rl("label", "run", out / split, "--name", encoder, *flags)
        _robot_rl("label", "calibrate", out / "usual", "--name", encoder)
        with LabelStore(out / "usual") as usual, LabelStore(out / "shifted") as shifted:
            shutil.copy(usual.calibration_path(encoder), shifted.calibration_path(encoder))


def pictures(out: Path, split: str, camera: str) -> dict[str, Figure]:
    """ROC-AUC of the pixel distance and of the number of steps, on episodes that the heads do not know."""
    known = set(read_head(out / "bundled.pt").trained_on)

    def last(store: EpisodeStore, name: str) -> np.ndarray:
        return store.read(name).observations[IMAGE_PREFIX + camera][-1].astype(np.float32)

    with EpisodeStore.open(out / "usual") as store:
        goal = np.mean([last(store, row.episode_id) for row in store.summaries()
                        if row.success and row.episode_id in known], axis=0)  # fmt: skip
    with EpisodeStore.open(out / split) as store:
        rows = [row for row in store.summaries() if row.episode_id not in known]
        success = np.array([bool(row.success) for row in rows])
        near = np.array([-np.sqrt(np.square(last(store, row.episode_id) - goal).mean()) for row in rows])
        steps = np.array([row.length for row in rows], float)
    return {
        name: with_interval(lambda i, score=score: roc_auc(success[i], score[i]), len(rows))  # type: ignore[misc]
        for name, score in (("pixel distance", near), ("number of steps", steps))
    }


def main() -> None:
    """Makes what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.5, help="of the episodes, to train on (default: 0.5)")
    parser.add_argument("--camera", default="front")
    arguments = parser.parse_args()
    out, camera = arguments.out, arguments.camera
    prepare(out, arguments.episodes, arguments.share, camera)
    print("| looks | labels by | judged | " + " | ".join(name.replace("_", " ") for name in FIGURES) + " | good for |")
    print("|---|---|---|" + "---|" * len(FIGURES) + "---|")
    for split in SPLITS:
        for encoder in ENCODERS:
            found = json.loads(_robot_rl("label", "report", out / split, "--name", encoder, "--json", codes=(0, 1)))
            cells = [_cell(Figure(**found["figures"][name])) for name in FIGURES]
            good = [verdict["use"] for verdict in found["verdicts"] if verdict["passed"]]
            told = ", ".join(good) or "nothing"
            print(f"| {split} | {encoder} weights | {found['judged']} | {' | '.join(cells)} | {told} |")
        for name, figure in pictures(out, split, camera).items():
            print(f"| {split} | {name} | | {_cell(figure)} |" + " |" * len(FIGURES))


def _cell(figure: Figure) -> str:
    if figure.value is None or not np.isfinite(figure.value):
        return "unknown"
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"


def _robot_rl(*words: Any, codes: tuple[int, ...] = (0,)) -> str:
    """A command's standard output."""
    command = [str(Path(sys.executable).with_name("robot-rl")), *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    main()
