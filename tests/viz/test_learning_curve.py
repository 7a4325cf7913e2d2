import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from robot_rl.errors import RunDirectoryError
from robot_rl.viz.learning_curve import BLUE, GREEN, ORANGE, compare_curves, learning_curve, rolling_mean


def make_run(seed=0, assisted_until=60, episodes=120):
    """A run that first fails alone and is helped, and then succeeds alone."""
    rng = np.random.default_rng(seed)
    return [
        {
            "kind": "episode",
            "env_step": 50 * (i + 1),
            "episode": i,
            "return": float(i > 30),
            "success": i > 30,
            "assisted": i < assisted_until and i % 2 == 0,
            "steps": 50,
            "cycle_time_s": float(5 - 3 * i / episodes + 0.1 * rng.normal()) if i > 30 else None,
            "intervention_steps": 20 if i < assisted_until and i % 2 == 0 else 0,
            "intervention_rate": 0.4 if i < assisted_until and i % 2 == 0 else 0.0,
            "force_peak_n": 20.0,
            "wall_s": 3.0 * i,
        }
        for i in range(episodes)
    ] + [
        *(
            {
                "kind": "curve",
                "env_step": 1000 * k,
                "episodes": 20,
                "success_rate": 0.15 * k,
                "cycle_time_s": 5.0 - 0.4 * k,
            }
            for k in range(1, 7)
        ),
        {"kind": "evaluation", "env_step": 50 * episodes, "episodes": 100, "success_rate": 0.96, "cycle_time_s": 2.0},
    ]


def pixels_of(path, colour):
    """How many pixels of a PNG have (nearly) the colour."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    return int((np.abs(image - wanted).max(axis=-1) < 8).sum())


def test_rolling_mean_by_hand():
    assert rolling_mean([1, 2, 3, 4, 5], window=3).tolist() == pytest.approx([1, 1.5, 2, 3, 4])
    assert rolling_mean([]).shape == (0,)


def test_learning_curve_shows_helped_and_unhelped_apart_and_the_evaluation(tmp_path):
    path = tmp_path / "curve.png"
    evaluation = {"success_rate": 0.96, "success_ci95": (0.9, 0.98), "cycle_time_s": 2.0, "episodes": 100}
    learning_curve(make_run(), path, title="reach, seed 0", evaluation=evaluation, demo_cycle_time_s=4.5)
    assert Image.open(path).size == (1300, 832)
    for colour in (BLUE, ORANGE, GREEN):
        assert pixels_of(path, colour) > 200
    learning_curve([r for r in make_run(assisted_until=0) if r["kind"] == "episode"], path, title="reach, alone")
    assert pixels_of(path, GREEN) == 0


@pytest.mark.slow
@pytest.mark.parametrize("metrics", [[], make_run()[:1], make_run()[-1:]])
def test_a_run_that_has_hardly_begun_can_be_drawn(tmp_path, metrics):
    learning_curve(metrics, tmp_path / "curve.png", title="short")
    compare_curves({"a": [metrics]}, tmp_path / "compare.png")


def test_compare_draws_every_group_and_seed(tmp_path):
    groups = {"helped": [make_run(s) for s in range(3)], "alone": [make_run(s, 0) for s in range(2)], "none": []}
    compare_curves(groups, tmp_path / "a.png", title="reach", references={"cloning": 0.3, "straight": 0.2})
    assert pixels_of(tmp_path / "a.png", BLUE) > 200
    assert pixels_of(tmp_path / "a.png", ORANGE) > 200
    compare_curves({"helped": groups["helped"]}, tmp_path / "b.png")
    assert pixels_of(tmp_path / "b.png", ORANGE) == 0


@pytest.mark.slow
def test_the_same_run_gives_the_same_picture_and_no_pyplot(tmp_path):
    for name in ("a", "b"):
        learning_curve(make_run(), tmp_path / name, title="same")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    code = "import sys, robot_rl.viz.learning_curve; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_where_it_cannot_be_written_the_error_says_so(tmp_path):
    with pytest.raises(RunDirectoryError, match="cannot write"):
        learning_curve([], tmp_path / "none" / "curve.png", title="x")


def test_without_success_only_the_return_is_drawn(tmp_path):
    metrics = [
        {"kind": "episode", "env_step": 100 * n, "return": -10.0 + n, "success": None, "assisted": False}
        for n in range(1, 9)
    ]
    metrics.append({"kind": "curve", "env_step": 500, "success_rate": None, "return_mean": -4.0})
    evaluation = {"success_rate": None, "return_mean": -2.0, "return_ci95": [-3.0, -1.5], "episodes": 5}
    learning_curve(metrics, tmp_path / "curve.png", title="some", evaluation=evaluation)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
