import torch
from torch.utils.flop_counter import FlopCounterMode

from robot_rl.config.components import SACConfig
from robot_rl.learn import bench


def test_flops_are_those_of_the_products_that_torch_runs():
    config = SACConfig(ensemble_size=3, hidden_sizes=(64, 32))
    learner, batch = bench._learner(config), bench._batch()
    with FlopCounterMode(display=False) as counter:
        learner.update(batch)
    needed = bench.update_flops(config, bench.OBSERVATION, bench.ACTION, bench.BATCH, bench.UPDATES)
    # the last layer (width 1) runs element-wise and is not counted by torch; the first layer's gradient also covers
    # the observation's columns, which nobody needs
    assert 0.95 * needed < counter.get_total_flops() < 1.05 * needed


def test_report_is_complete_and_restores_the_threads():
    torch.set_num_threads(2)
    report = bench.bench_learner(ensembles=(2,), rounds=2)
    assert torch.get_num_threads() == 2
    row = report["ensemble_2"]
    assert report["threads"] == 1
    assert report["gemm_gflops"] > 0
    assert row["best_ms"] <= row["median_ms"]
    assert 0 < row["share"] < 1
