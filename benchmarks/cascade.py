"""Calls that a cascade saves: a head answers first, and a simulated model only where the head is unsure.

    python benchmarks/cascade.py --train runs/protocol/usual --test runs/protocol/usual runs/protocol/light

Trains a success head on part of the first store. The model is simulated: it knows the outcome, and is wrong for a given
share of the episodes. Prints, for each store and each threshold, the share of the episodes without a call, and errors.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.config.labelling import FramesConfig, LabelConfig
from robot_rl.config.reward import BudgetConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.labels.train_head import HeadSettings, train_for
from robot_rl.reward.labels.units import Units
from robot_rl.reward.query import Query, QueryKind
from robot_rl.reward.validation.ground_truth import read_truth
from robot_rl.reward.vlm.cascade_backend import CascadeBackend
from robot_rl.reward.vlm.head_backend import HeadBackend

TASK = "insert the peg into the hole"
SURE = (0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


class SimulatedModel:
    """A labeller of success that is wrong for a share of the episodes, with a confidence of 0.9."""

    concurrency = 1

    def __init__(self, success: Mapping[str, bool], error: float, seed: int) -> None:
        draws = np.random.default_rng(seed).uniform(size=len(success))
        self._answer = {
            name: real != (draw < error) for (name, real), draw in zip(success.items(), draws.tolist(), strict=True)
        }

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its name."""
        return {"backend": "simulated", "model": "simulated"}

    def answer(self, query: Query) -> Answer:
        """Return its probability of success."""
        return Answer(Status.OK, (0.9 if self._answer[query.clips[0].episode_id] else 0.1,))

    def close(self) -> None:
        """Do nothing."""


def judged(head: HeadBackend, path: Path, camera: str, error: float, seed: int) -> list[dict[str, float]]:
    """Return calls and errors for each threshold, on the episodes that the head was not trained on."""
    with EpisodeStore.open(path) as store:
        known = {row.episode_id: bool(row.success) for row in store.summaries()}
        held_out = [name for name in known if name not in head.identity["trained_on"]]
        units = Units(store, LabelConfig(frames=FramesConfig(camera=camera, count=2)), TASK, only=held_out)
        queries = [unit.query() for unit in units]
    truth = np.array([known[query.clips[0].episode_id] for query in queries])
    rows = []
    for sure in SURE:
        cascade = CascadeBackend(head, SimulatedModel(known, error, seed), sure)
        answers = [cascade.answer(query) for query in queries]
        called = np.array([answer.values[0] >= 0.5 for answer in answers])
        rows.append(
            {
                "sure": sure,
                "episodes": len(truth),
                "spared": float(np.mean([answer.attempts == 0 for answer in answers])),
                "wrong": float(np.mean(called != truth)),
                "false_positives": float(np.mean(called[~truth])),
                "missed": float(np.mean(~called[truth])),
            }
        )
    return rows


def main() -> None:
    """Train, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, nargs="+", required=True)
    parser.add_argument("--camera", default="wrist")
    parser.add_argument("--share", type=float, default=0.5, help="of the episodes, to train on (default: 0.5)")
    parser.add_argument("--errors", type=float, nargs="+", default=(0.0, 0.05), help="of the model (default: 0 0.05)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    settings = HeadSettings(
        TASK, "bundled", 128, FramesConfig(camera=arguments.camera), share=arguments.share, seed=arguments.seed
    )
    with EpisodeStore.open(arguments.train) as store, tempfile.TemporaryDirectory() as folder:
        head, _ = train_for(QueryKind.SUCCESS, store, read_truth(store), settings)
        head.write(Path(folder) / "head.pt")
        first = HeadBackend(Path(folder) / "head.pt", QueryKind.SUCCESS, Budget(BudgetConfig()))
    print(
        "| store | errors of the model | sure from | judged | without a call | wrong | failures called successes "
        "| successes missed |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for path in arguments.test:
        for error in arguments.errors:
            for row in judged(first, path, arguments.camera, error, arguments.seed):
                shares = " | ".join(f"{row[key]:.3f}" for key in ("spared", "wrong", "false_positives", "missed"))
                print(f"| {path.name} | {error:g} | {row['sure']:g} | {row['episodes']:.0f} | {shares} |")


if __name__ == "__main__":
    main()
