import pytest

from robot_rl.bench.replay import bench_replay

pytestmark = pytest.mark.slow


def test_memory_is_what_is_stated_and_sampling_is_timed():
    report = bench_replay(rounds=3)
    assert report["frames"]["memory_ratio"] < 0.501
    assert report["features"]["memory_ratio"] < 0.1
    for row in report.values():
        assert row["share"] > 0
