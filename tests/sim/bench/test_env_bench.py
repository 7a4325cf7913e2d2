import pytest

from robot_rl.env.registry import benchmark_names
from sim.bench.env import bench_env

pytestmark = pytest.mark.slow


def test_the_environment_benchmark_reports_ratios_that_make_sense():
    report = bench_env(episodes=1, rounds=2, frames=3)
    assert report["env_steps"] > 10
    assert 1.0 < report["env_ratio"] < 10.0  # the environment does more than the physics; the goal is 3
    low, high = sorted((report["env_ratio_free"], report["env_ratio_contact"]))
    assert low <= report["env_ratio"] <= high
    assert 1.0 < report["two_arms_ratio"] < 5.0  # the goal is 2.2
    milliseconds = 1e3 / report["env_steps_per_s"]
    assert milliseconds / report["physics_ms_per_env_step"] == pytest.approx(report["env_ratio"])
    if report["image_ratio"] is None:
        pytest.skip("cameras cannot be rendered here")
    assert report["image_ratio"] == pytest.approx(report["image_pair_ms"] / report["image_pair_bound_ms"])
    assert 0.5 < report["image_ratio"] < 5.0  # the goal is 1.5


def test_it_is_registered():
    assert {"env", "learner"} <= set(benchmark_names())
