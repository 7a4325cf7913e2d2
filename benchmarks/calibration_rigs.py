"""Accuracy and stated uncertainty of camera calibration on random simulated rigs, beside OpenCV's closed forms.

    python benchmarks/calibration_rigs.py --rigs 40 --out rigs.jsonl      # takes about 20 minutes on one quiet core
    python benchmarks/calibration_rigs.py --summary rigs.jsonl

Each rig has a lens, a camera pose and a board pose of its own. The planner proposes 15 poses from a guess that is off
by a centimetre and two degrees. Pictures are rendered with distortion, blur, noise, pixel rounding and partly hidden
boards. The arm reports its poses with 0.2 mm and 0.05 deg of noise per axis. Intrinsics are calibrated from these
pictures, and the hand-eye pose with those intrinsics; no true value is used. OpenCV's solvers get the same poses of the
board. The test for a slip gets the same pictures, and again with the arm as if the camera had slipped half way.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import sim  # noqa: F401  (picks the OpenGL platform before MuJoCo is imported)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "calibration"))

import numpy as np
import rigs
import slips
from synthetic import BOARD, PINHOLE, apart, shaken

from calibration.camera.intrinsics import calibrate_intrinsics
from calibration.camera.view import BadViewError, BoardDetector
from calibration.hand_eye.hand_eye import calibrate_hand_eye
from calibration.hand_eye.problem import Guess, Sighting
from calibration.hand_eye.slip import FALSE_ALARMS
from calibration.result import MOUNTINGS, CameraIntrinsics
from robot_rl.errors import CalibrationError
from sim.calibration.rig import PictureFaults

POSES = 15


def random_lens(seed: int) -> CameraIntrinsics:
    """Draw a lens of 50 to 60 degrees with some barrel distortion."""
    rng = np.random.default_rng([seed, 11])
    change = np.concatenate((rng.uniform(-40, 40, 1), rng.uniform(-12, 12, 2), rng.uniform(-1, 1, 8)))
    scale = np.array([0.1, 0.03, 5e-4, 5e-4, 0.01, 0.02, 0.01, 0.0])
    f = PINHOLE.fx + change[0]
    return PINHOLE.with_vector(
        np.concatenate(([f, 0.995 * f], PINHOLE.vector[2:4] + change[1:3], PINHOLE.vector[4:] + scale * change[3:]))
    )


def one_rig(seed: int, mounting: str) -> dict[str, Any]:
    """Calibrate one rig, and return its errors with their stated uncertainties."""
    started = time.monotonic()
    lens, truth, rng = random_lens(seed), rigs.random_truth(seed, mounting), np.random.default_rng([seed, 12])
    rig = rigs.make_rig(truth, lens)
    detector, sightings, corner_errors = BoardDetector(BOARD), [], []
    for i, T in enumerate(rigs.planned(rig, truth, POSES, intrinsics=lens, seed=seed)):
        picture = rig.render(T, PictureFaults(), rng)
        try:
            view = detector.detect(picture, f"view {i}")
        except BadViewError as error:
            print(f"rig {seed}, view {i}: {error}", file=sys.stderr)
            continue
        sightings.append(Sighting(view, shaken(T, rng)))
        seen = truth.predict_board(T)
        corner_errors.append(view.pixels - lens.project(view.points @ seen.matrix.T + seen.position))
    rig.close()
    camera = calibrate_intrinsics([s.view for s in sightings], "wrist")
    fit = calibrate_hand_eye(camera.result, sightings, mounting, "fr3")
    found, X = fit.result.T_parent_camera, truth.X
    error = np.concatenate((found.position - X.position, (found @ X.inverse()).rotvec))
    off = np.abs(camera.result.vector - lens.vector)
    counted = [
        e for e, s in zip(corner_errors, sightings, strict=True) if s.view.name in {v.name for v in camera.views}
    ]
    clear = np.concatenate([e[np.linalg.norm(e, axis=1) < 0.3] for e in counted])
    return {
        "seed": seed,
        "mounting": mounting,
        "views": len(sightings),
        "focal_percent": float(100 * (off[:2] / lens.vector[:2]).max()),
        "center_px": float(off[2:4].max()),
        "center_sigma_px": float(camera.result.sigma[2:4].max()),
        "rms_px": camera.result.rms,
        "corner_noise_px": float(np.sqrt(np.mean(clear**2))),
        "position_mm": 1e3 * apart(X, found)[0],
        "rotation_deg": float(np.degrees(apart(X, found)[1])),
        "normalised": (error / fit.result.sigma).tolist(),
        "mahalanobis": float(error @ np.linalg.solve(np.array(fit.result.covariance), error)),
        "opencv_mm": {name: 1e3 * apart(X, other)[0] for name, other in fit.closed_forms.items()},
        "opencv_deg": {name: float(np.degrees(apart(X, other)[1])) for name, other in fit.closed_forms.items()},
        "good": fit.quality.good and camera.quality.good,
        "slip_p": fit.slip.change.p if fit.slip is not None else 1.0,
        "names_slip_of_mm": {mm: names_slip(camera.result, sightings, truth, seed, mm) for mm in (0.5, 1.0, 3.0)},
        "seconds": time.monotonic() - started,
    }


def names_slip(camera: CameraIntrinsics, sightings: list[Sighting], truth: Guess, seed: int, mm: float) -> bool:
    """Return whether a slip by so many millimetres before the middle view is named."""
    path = slips.steps(mm, len(sightings) // 2, len(sightings))
    moved = slips.moving(sightings, truth, seed, path)
    try:
        fit = calibrate_hand_eye(camera, moved, truth.mounting, "fr3")
    except CalibrationError as error:
        return "the camera moved by" in str(error)
    return fit.slip is not None and fit.slip.found


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians, 95th percentiles, worst, how often the stated uncertainty held, and how often ours was nearer the truth.

    For each mounting, and for `both` together.
    """

    def spread(values: list[float]) -> dict[str, float]:
        return {
            "median": float(np.median(values)),
            "p95": float(np.percentile(values, 95)),
            "worst": float(np.max(values)),
        }

    def beside(solver: str, mine: list[dict[str, Any]]) -> dict[str, Any]:
        """Return figures of a closed form on the rigs that it solved, and the share of these where ours was nearer."""
        theirs = [row for row in mine if solver in row["opencv_mm"]]
        figures = (("position_mm", "opencv_mm"), ("rotation_deg", "opencv_deg"))
        return {
            ours: spread([row[other][solver] for row in theirs])
            | {"ours_nearer": float(np.mean([row[ours] < row[other][solver] for row in theirs]))}
            for ours, other in figures
        }

    answer: dict[str, Any] = {
        "intrinsics": {
            **{key: spread([row[key] for row in rows]) for key in ("focal_percent", "center_px", "rms_px")},
            "rms_over_corner_noise": spread([row["rms_px"] / row["corner_noise_px"] for row in rows]),
        }
    }
    for mounting in (*MOUNTINGS, "both"):
        mine = [row for row in rows if mounting in (row["mounting"], "both")]
        if not mine:
            continue
        normalised = np.array([row["normalised"] for row in mine])
        answer[mounting] = {
            "rigs": len(mine),
            "within_0.5mm_and_0.1deg": float(
                np.mean([r["position_mm"] <= 0.5 and r["rotation_deg"] <= 0.1 for r in mine])
            ),
            "slip_named_without_one": sum(row["slip_p"] <= FALSE_ALARMS for row in mine),
            "slip_named_of_mm": {
                mm: sum(row["names_slip_of_mm"][mm] for row in mine) for mm in mine[0]["names_slip_of_mm"]
            },
            "2_sigma_holds_per_axis": float((np.abs(normalised) <= 2).mean()),
            "2_sigma_holds_all_six": float(
                np.mean([row["mahalanobis"] <= 12.85 for row in mine])
            ),  # chi2(6) at 95.45 %
            "position_mm": spread([row["position_mm"] for row in mine]),
            "rotation_deg": spread([row["rotation_deg"] for row in mine]),
            "opencv": {name: beside(name, mine) for name in mine[0]["opencv_mm"]},
        }
    return answer


def main() -> None:
    """Run the rigs, or print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rigs", type=int, default=40, help="rigs of each mounting (default: 40)")
    parser.add_argument(
        "--out", type=Path, help="a line of JSON for each rig is appended; rigs that are there are skipped"
    )
    parser.add_argument("--summary", type=Path, metavar="FILE", help="sum up such a file")
    arguments = parser.parse_args()
    if arguments.summary is not None:
        rows = [json.loads(line) for line in arguments.summary.read_text().splitlines()]
        print(json.dumps(summary(rows), indent=1))
        return
    if arguments.out is None:
        parser.error("--out or --summary is needed")
    done = set()
    if arguments.out.exists():
        done = {(row["seed"], row["mounting"]) for row in map(json.loads, arguments.out.read_text().splitlines())}
    with open(arguments.out, "a", encoding="utf-8") as file:
        for seed in range(arguments.rigs):
            for mounting in MOUNTINGS:
                if (seed, mounting) not in done:
                    print(json.dumps(one_rig(seed, mounting)), file=file, flush=True)


if __name__ == "__main__":
    main()
