"""False alarms and power of the test for a slip during a hand-eye calibration, on rigs without pictures.

    python benchmarks/calibration_slips.py --rigs 500 --out slips.jsonl      # takes about an hour on one quiet core
    python benchmarks/calibration_slips.py --summary slips.jsonl

Each rig has 15 views with 0.1 px of noise, and an arm with 0.2 mm and 0.05 deg of noise per axis. A slip by 3 mm turns
the mount by 0.8 deg, too, and smaller ones in proportion; it happens before a random view; `and back` lasts five
views. `calibration_rigs.py` has the same figures for rendered pictures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "calibration"))

import numpy as np
from slips import rig_that_moves, steps
from synthetic import PINHOLE

from calibration.hand_eye.hand_eye import calibrate_hand_eye
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError
from robot_rl.statistics import wilson_interval

VIEWS = 15
KINDS: dict[str, dict[str, Any]] = {
    "nothing moves": {},
    "nothing moves, 3 wrong poses": {"wrong": 3},
    "camera 0.5 mm": {"mm": 0.5},
    "camera 1 mm": {"mm": 1.0},
    "camera 3 mm": {"mm": 3.0},
    "board 1 mm": {"mm": 1.0, "moves": "board"},
    "camera 1 mm, 2 wrong poses": {"mm": 1.0, "wrong": 2},
    "camera 1 mm, and back": {"mm": 1.0, "back": True},
    "camera drifts by 1 mm": {"mm": 1.0, "drift": True},
    "camera drifts by 3 mm": {"mm": 3.0, "drift": True},
}
"""Kinds of recordings. `power` of the first two is the share of false alarms."""


def one_recording(
    seed: int,
    mounting: str,
    kind: str,
    mm: float = 0.0,
    wrong: int = 0,
    moves: str = "camera",
    drift: bool = False,
    back: bool = False,
) -> dict[str, Any]:
    """Calibrate one rig, and return whether a movement was named, and how well its moment was found."""
    rng = np.random.default_rng([seed, 21])
    first = int(rng.integers(3, VIEWS - 2))  # at least three views before it, and after it
    path = np.linspace(0.0, mm, VIEWS) if drift else steps(mm, first, VIEWS)
    if back:  # for a third of the views
        first = min(first, VIEWS - 7)
        path = steps(mm, first, VIEWS) - steps(mm, first + 5, VIEWS)
    bad = rng.choice(VIEWS, wrong, replace=False).tolist()
    sightings, _ = rig_that_moves(seed, mounting, path, moves, VIEWS, bad)
    row = {"seed": seed, "mounting": mounting, "kind": kind}
    try:
        fit = calibrate_hand_eye(PINHOLE, sightings, mounting, "fr3")
    except CalibrationError as error:
        text = str(error)
        return {
            **row,
            "good": False,
            "named": any(f" {verb} by " in text for verb in ("moved", "drifted", "was elsewhere")),
        }
    assert fit.slip is not None
    between = fit.slip.change.between
    return {
        **row,
        "good": fit.quality.good,
        "named": fit.slip.found,
        "p": fit.slip.change.p,
        "holds_moment": bool(between[0] < first <= between[1]),
        "names_cause": moves in fit.slip.change.causes,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the share of recordings in which a movement was named, by kind, with its 95 % interval."""
    answer = {}
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        named = [row for row in mine if row["named"]]
        if mine:
            answer[kind] = {
                "rigs": len(mine),
                "named": len(named),
                "share": len(named) / len(mine),
                "95 %": wilson_interval(len(named), len(mine)),
                "good": sum(row["good"] for row in mine),
                "moment holds, of those with a fit": [
                    sum(row.get("holds_moment", False) for row in named),
                    sum("p" in row for row in named),
                ],
            }
    return answer


def main() -> None:
    """Run the rigs, or print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rigs", type=int, default=500, help="rigs of each mounting without a movement (default: 500)")
    parser.add_argument("--moving", type=int, default=100, help="rigs of each mounting and movement (default: 100)")
    parser.add_argument("--out", type=Path, help="a line of JSON for each rig is appended; rigs that are there stay")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="sum up such a file")
    arguments = parser.parse_args()
    if arguments.summary is not None:
        rows = [json.loads(line) for line in arguments.summary.read_text().splitlines()]
        print(json.dumps(summary(rows), indent=1))
        return
    if arguments.out is None:
        parser.error("--out or --summary is needed")
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    done = {(row["seed"], row["mounting"], row["kind"]) for row in map(json.loads, lines)}
    with open(arguments.out, "a", encoding="utf-8") as file:
        for kind, options in KINDS.items():
            count = arguments.moving if options.get("mm") else arguments.rigs
            for seed in range(20_000, 20_000 + count):
                for mounting in MOUNTINGS:
                    if (seed, mounting, kind) not in done:
                        print(json.dumps(one_recording(seed, mounting, kind, **options)), file=file, flush=True)


if __name__ == "__main__":
    main()
