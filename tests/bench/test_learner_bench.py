import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from robot_rl.bench import learner as bench

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", bench.CASES)
def test_flops_are_those_of_the_products_that_torch_runs(case):
    work = bench.CASES[case]
    learner, batch = work.learner(), work.minibatches()
    with FlopCounterMode(display=False) as counter:
        learner.update(batch)
    # the last layer (width 1) runs element-wise and is not counted by torch; a first layer's gradient also covers
    # the observation's columns, which nobody needs; and the head multiplies two matrices out first, which takes more
    # operations than are needed but less time
    most = 1.35 if case == "pixels" else 1.05
    assert 0.95 * work.flops < counter.get_total_flops() < most * work.flops


def test_report_is_complete_and_leaves_the_threads_alone():
    torch.set_num_threads(2)
    report = bench.bench_learner(cases=("pixels",), engines=("eager",), rounds=4)
    report |= bench.bench_learner(cases=("state_2",), engines=("eager", "bfloat16"), rounds=4)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert report["threads"] == 1
    assert report["gemm_size"] in bench.GEMM_SIZES
    for case, engine in (("state_2", "eager"), ("state_2", "bfloat16"), ("pixels", "eager")):
        row = report[case][engine]
        assert row["best_ms"] <= row["median_ms"]
        # the bound is float32's, which bfloat16 may pass, and is timed as well, beside other tests: what this can see
        # is work of another order than was counted
        assert 0.0 < row["share"] < 2.0
    assert report["pixels"]["times_faster"] > 10
