"""Accuracy of heads on the bundled encoder, in the scene of their training and in changed scenes.

    python benchmarks/label_protocol.py --out runs/protocol [--camera front]

Records 400 episodes of `peg_insert` with every outcome, and 100 for each change: cameras, light, a second hole, a board
before the hole, episodes made to look done, and the same episodes with and without cards with writing in view. Trains a
head for success and one for progress on half of the first ones, calibrates on half of the others, and reports on the
rest, with the commands of users. Rows for comparison: the same with random weights, the distance of the last picture
from the mean one of success, a constant, a clock, and the truth with noise. Files that exist are not made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from protocol_episodes import SPLITS, TRUTH, Split, record

from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.validation.answer_flips import USE
from robot_rl.reward.validation.figures import Figure, rank_correlation, roc_auc, with_interval
from robot_rl.reward.validation.ground_truth import read_truth
from robot_rl.reward.vlm.head_backend import read_head

SEED = 77
USUAL = "usual"
ENCODERS = ("bundled", "random")
NOISE = 0.1
"""Standard deviation added to the true progress, for the row of a labeller that is nearly right."""
SUCCESS = ("roc_auc", "precision", "recall", "false_positives_per_100_failures", "near_miss_false_positive_rate")
PROGRESS = ("rank_correlation_to_truth", "rank_correlation_of_a_clock", "voc_of_successes", "final_gap")

FLIPS = ("flip_rate", "failures_flipped_to_success", "successes_flipped_to_failure", "probability_change")


def prepare(
    out: Path, splits: Mapping[str, Split], episodes: tuple[int, int], size: int, share: float, camera: str
) -> None:
    """Make the episodes, heads, labels and calibrations that do not exist yet."""
    for split in splits:
        if not (out / split).exists():
            number = list(SPLITS).index(SPLITS[split].like or split)
            record(out / split, split, episodes[split != USUAL], SEED + number, size)
    for encoder in ENCODERS:
        for kind in ("success", "progress"):
            name = f"{encoder}-{kind}"
            head = out / f"{name}.pt"
            if not head.exists():
                which = ("--kind", kind, "--encoder", encoder, "--camera", camera, "--share", share)
                _robot_rl("label", "train", out / USUAL, *which, "--out", head)
            settings = ("backend=head", f"head={head}", f"frames.camera={camera}")
            flags = [part for setting in settings for part in ("--set", setting)]
            for split in splits:
                _robot_rl("label", "run", out / split, "--kind", kind, "--name", name, *flags)
        name = f"{encoder}-success"
        with LabelStore(out / USUAL) as labels:
            calibration = labels.calibration_path(name)
        if not calibration.exists():
            _robot_rl("label", "calibrate", out / USUAL, "--name", name)
        for split in splits:
            with LabelStore(out / split) as labels:
                if not (copied := labels.calibration_path(name)).exists():
                    shutil.copy(calibration, copied)


def baselines(out: Path, split: str, camera: str) -> dict[str, tuple[int, Figure]]:
    """Evaluate baselines without learning on the episodes held out from the heads."""
    known = set(read_head(out / "bundled-success.pt").trained_on)

    def last(store: EpisodeStore, name: str) -> np.ndarray:
        return store.read(name).observations[IMAGE_PREFIX + camera][-1].astype(np.float32)

    with EpisodeStore.open(out / USUAL) as store:
        goal = np.mean([last(store, row.episode_id) for row in store.summaries()
                        if row.success and row.episode_id in known], axis=0)  # fmt: skip
    with EpisodeStore.open(out / split) as store:
        rows = [row for row in store.summaries() if row.episode_id not in known]
        truth = read_truth(store, progress=TRUTH)
        success = np.array([bool(row.success) for row in rows])
        near = np.array([-np.sqrt(np.square(last(store, row.episode_id) - goal).mean()) for row in rows])
    ends = np.array([truth[row.episode_id].progress[-1] for row in rows])  # type: ignore[index]
    noisy = ends + np.random.default_rng(0).normal(0.0, NOISE, len(ends))
    scores = {"pixel distance": near, "a constant": np.zeros(len(rows)), f"the truth, noise of {NOISE}": noisy}
    return {
        name: (len(rows), with_interval(lambda i, score=score: roc_auc(success[i], score[i]), len(rows)))  # type: ignore[misc]
        for name, score in scores.items()
    }


def rewinds(out: Path, split: str, name: str) -> tuple[Figure, Figure]:
    """Return rank correlations with the true progress of labels and of a clock, for episodes that went back."""
    with EpisodeStore.open(out / split) as store:
        truth = read_truth(store, progress=TRUTH)
    known = set(read_head(out / f"{name}.pt").trained_on)
    ranks = []
    with LabelStore(out / split) as labels:
        for label in labels.labels(name):
            clip = label.subject[0]
            of = truth[str(clip["episode_id"])]
            if of.outcome in ("rewinds", "undone") and str(clip["episode_id"]) not in known and of.progress is not None:
                real = of.progress[list(clip["rows"])]
                predicted = np.array(label.answer.values)
                ranks.append((rank_correlation(predicted, real), rank_correlation(np.arange(len(real)), real)))
    both = np.array(ranks)
    one, other = (with_interval(lambda i, column=both[:, k]: float(column[i].mean()), len(both)) for k in (0, 1))  # type: ignore[misc]
    return one, other


def tables(out: Path, splits: Mapping[str, Split], camera: str) -> None:
    """Print the tables of results."""
    print("| scene | success by | judged | " + _heads(SUCCESS) + " | good for |")
    print("|---|---|---|" + "---|" * len(SUCCESS) + "---|")
    for split, made in splits.items():
        for encoder in ENCODERS:
            found = _report(out / split, f"{encoder}-success")
            cells = f"{_cells(found, SUCCESS)} | {_uses(found)}"
            print(f"| {made.description} | {encoder} weights | {found['compared']} | {cells} |")
        for name, (judged, figure) in baselines(out, split, camera).items():
            print(f"| {made.description} | {name} | {judged} | {_cell(figure)} |" + " |" * len(SUCCESS))
    print(
        "\n| scene | progress by | judged | " + _heads(PROGRESS) + " | where it went back | a clock there | good for |"
    )
    print("|---|---|---|" + "---|" * len(PROGRESS) + "---|---|---|")
    for split, made in splits.items():
        for encoder in ENCODERS:
            name = f"{encoder}-progress"
            found = _report(out / split, name, "--progress", TRUTH)
            back = " | ".join(_cell(figure) for figure in rewinds(out, split, name))
            cells = f"{_cells(found, PROGRESS)} | {back} | {_uses(found)}"
            print(f"| {made.description} | {encoder} weights | {found['compared']} | {cells} |")


def flip_table(out: Path, splits: Mapping[str, Split]) -> None:
    """Print how many answers change with cards in view, against the same episodes without."""
    print(
        "\n| in view | success by | pairs | "
        + _heads(FLIPS)
        + " | good for it |\n|---|---|---|"
        + "---|" * len(FLIPS)
        + "---|"
    )
    for split, made in splits.items():
        if not made.like:
            continue
        for encoder in ENCODERS:
            found = _report(out / split, f"{encoder}-success", "--plain", out / made.like)
            verdict = next(gate["fitness"] for gate in found["gates"] if gate["use"] == USE)
            print(
                f"| {made.description} | {encoder} weights | {found['compared']} | {_cells(found, FLIPS)} | {verdict} |"
            )


def _report(store: Path, name: str, *more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        _robot_rl("label", "report", store, "--name", name, *more, "--json", codes=(0, 1))
    )
    return found


def _heads(names: tuple[str, ...]) -> str:
    return " | ".join(name.replace("_", " ") for name in names)


def _cells(found: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return " | ".join(_cell(Figure(**found["figures"][name])) for name in names)


def _cell(figure: Figure) -> str:
    if figure.value is None or not np.isfinite(figure.value):
        return "unknown"
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"


def _uses(found: Mapping[str, Any]) -> str:
    return ", ".join(gate["use"] for gate in found["gates"] if gate["passed"]) or "nothing"


def _robot_rl(*arguments: Any, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command and return its standard output."""
    command = [str(Path(sys.executable).with_name("robot-rl")), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(done.returncode)
    return done.stdout


def main() -> None:
    """Make what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--episodes", type=int, nargs=2, default=(400, 100), help="as trained, and of each change")
    parser.add_argument("--share", type=float, default=0.5, help="of the episodes, to train on (default: 0.5)")
    parser.add_argument("--camera", default="wrist")
    parser.add_argument("--size", type=int, default=128, help="of the frames [px]; models that read need more")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, metavar="NAME", help="besides usual (default: all)")
    arguments = parser.parse_args()
    chosen = {name: split for name, split in SPLITS.items() if name in (USUAL, *(arguments.splits or SPLITS))}
    if lacking := {split.like for split in chosen.values()} - {"", *chosen}:
        parser.error(f"--splits needs {', '.join(lacking)}, too, to compare with")
    prepare(arguments.out, chosen, tuple(arguments.episodes), arguments.size, arguments.share, arguments.camera)
    tables(arguments.out, chosen, arguments.camera)
    flip_table(arguments.out, chosen)


if __name__ == "__main__":
    main()
