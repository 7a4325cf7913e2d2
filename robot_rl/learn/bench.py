"""How close the learner comes to this machine: time of `SAC.update` against the bound of its own matrix products."""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from robot_rl.config.components import SACConfig
from robot_rl.learn.batch import Batch
from robot_rl.learn.heads import StateHead
from robot_rl.learn.networks import Policy
from robot_rl.learn.sac import SAC

OBSERVATION, ACTION, BATCH, UPDATES = 24, 7, 256, 4
GEMM_SIZES = (256, 512, 1024)


def bench_learner(*, ensembles: tuple[int, ...] = (2, 10), rounds: int = 30) -> dict[str, Any]:
    """Times learner calls and matrix products in turn, in one thread.

    A call is 4 critic updates and one of actor and temperature: batch 256, observation 24, 7 continuous actions,
    hidden layers 256 and 256, 2 critics in the target.

    Args:
        ensembles: Numbers of critics to time.
        rounds: Calls of each.

    Returns:
        `threads`, `gemm_gflops` (best fp32 rate of n^3 products, n = 256, 512, 1024), and under `ensemble_<E>`:
        `gflop` that the call needs, `bound_ms` = these at that rate, `best_ms` and `median_ms` [wall clock], and
        `share` = bound_ms / best_ms.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _bench(ensembles, rounds)
    finally:
        torch.set_num_threads(threads)


def _bench(ensembles: tuple[int, ...], rounds: int) -> dict[str, Any]:
    configs = {size: SACConfig(ensemble_size=size, target_subset=min(2, size)) for size in ensembles}
    learners = {size: _learner(config) for size, config in configs.items()}
    batch, squares = _batch(), {n: torch.randn(n, n) for n in GEMM_SIZES}
    times: dict[int, list[float]] = {size: [] for size in ensembles}
    gemm_rate = 0.0
    for _ in range(rounds):
        for size, learner in learners.items():
            times[size].append(_seconds(functools.partial(learner.update, batch)))
            for n, square in squares.items():
                repeats = max(1, (512 // n) ** 3)
                best = min(_seconds(functools.partial(torch.mm, square, square)) for _ in range(repeats))
                gemm_rate = max(gemm_rate, 2 * n**3 / best)
    report: dict[str, Any] = {"threads": 1, "gemm_gflops": gemm_rate / 1e9}
    for size in ensembles:
        flops = update_flops(configs[size], OBSERVATION, ACTION, BATCH, UPDATES)
        best, bound = min(times[size]), flops / gemm_rate
        report[f"ensemble_{size}"] = {
            "gflop": flops / 1e9,
            "bound_ms": bound * 1e3,
            "best_ms": best * 1e3,
            "median_ms": statistics.median(times[size]) * 1e3,
            "share": bound / best,
        }
    return report


def update_flops(config: SACConfig, observation: int, action: int, batch: int, updates: int) -> int:
    """Floating-point operations of the matrix products that one learner call cannot do without.

    A product (m, k) x (k, n) counts 2 m k n; its backward is one more for the weights and one for the inputs.
    Element-wise work, LayerNorm, Adam and Polyak averaging count nothing: they are what the share pays for.
    """
    actor_sizes = (observation, *config.hidden_sizes, 2 * action)
    critic_sizes = (observation + action, *config.hidden_sizes, 1)
    actor, critic = _forward(batch, actor_sizes), _forward(batch, critic_sizes)
    # inputs' gradients: nobody needs those of the first layer, but for the action's columns in the actor's loss
    actor_inputs, critic_inputs = _forward(batch, actor_sizes[1:]), _forward(batch, critic_sizes[1:])
    action_columns = 2 * batch * action * critic_sizes[1]

    next_action = actor
    target = config.target_subset * critic
    critic_update = config.ensemble_size * (critic + critic + critic_inputs)  # forward, weights, inputs
    actor_update = (actor + actor + actor_inputs) + config.ensemble_size * (critic + critic_inputs + action_columns)
    return updates * (next_action + target + critic_update) + actor_update


def _forward(batch: int, sizes: tuple[int, ...]) -> int:
    return sum(2 * batch * a * b for a, b in itertools.pairwise(sizes))


def _learner(config: SACConfig) -> SAC:
    policy = Policy(
        head=StateHead(OBSERVATION),
        action_size=ACTION,
        gripper=False,
        hidden_sizes=config.hidden_sizes,
        generator=torch.Generator().manual_seed(0),
    )
    return SAC(policy, return_range=(0.0, 1.0), config=config)


def _batch() -> Batch:
    shape, generator = (UPDATES, BATCH), torch.Generator().manual_seed(0)
    return Batch(
        observation=torch.randn(*shape, OBSERVATION, generator=generator),
        action=torch.rand(*shape, ACTION, generator=generator) * 2 - 1,
        reward=torch.zeros(shape),
        discount=torch.full(shape, 0.97**3),
        next_observation=torch.randn(*shape, OBSERVATION, generator=generator),
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
