"""The sequential test: its error level holds however often it is read, and a good labeller passes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.gates import ENDING_EPISODES, ConditionResult, Fitness, GateResult
from robot_rl.reward.validation.report import Report
from robot_rl.reward.validation.sequential import (
    BOUNDS,
    USE,
    Trials,
    check_sequentially,
    faultless_needed,
    judge,
    trials_of_success,
)
from robot_rl.reward.validation.verdict import verdict_of


def ever_unfit(rate, bound, most, runs):
    """Return the share of runs that are called unfit at any moment."""
    draws = np.random.default_rng(1).random((runs, most)) < rate
    faults, least = np.cumsum(draws, axis=1), np.full(most, most + 1)
    for n in range(1, most + 1):
        least[n - 1] = next(k for k in range(n + 2) if k > n or judge(Trials(k, n), bound) is Fitness.UNFIT)
    return float((faults >= least).any(axis=1).mean())


def test_a_labeller_at_the_bound_is_called_unfit_in_at_most_one_run_of_twenty_and_a_bad_one_soon():
    assert ever_unfit(0.05, 0.05, 200, 2000) <= 0.05
    assert ever_unfit(0.25, 0.05, 60, 500) >= 0.95
    assert judge(Trials(10, 65), 0.01) is Fitness.UNFIT
    assert judge(Trials(1, 65), 0.01) is Fitness.NOT_SHOWN


def ever_fit(rate, bound, most, runs):
    """Return the share of runs that are called fit at any moment."""
    fits_at = [
        next((n for n in range(max(k, 1), most + 1) if judge(Trials(k, n), bound) is Fitness.FIT), most + 1)
        for k in range(int(bound * most) + 2)  # the last one is too many for any of them
    ]
    draws = np.random.default_rng(0).random((runs, most)) < rate
    faults = np.minimum(np.cumsum(draws, axis=1), len(fits_at) - 1)
    return float((np.array(fits_at)[faults] <= np.arange(1, most + 1)).any(axis=1).mean())


@pytest.mark.parametrize("bound", [0.01, 0.05, 0.2])
def test_an_unfit_labeller_that_is_looked_at_after_every_episode_passes_in_at_most_one_run_of_twenty(bound):
    assert ever_fit(bound, bound, 400 if bound > 0.01 else 800, 2000) <= 0.05
    assert ever_fit(1.2 * bound, bound, 400 if bound > 0.01 else 800, 2000) <= 0.05


def test_a_good_labeller_passes():
    assert ever_fit(0.001, 0.01, 1000, 500) >= 0.9


@given(st.integers(1, 2000), st.floats(0.005, 0.5))
def test_one_more_fault_among_as_many_is_never_better(total, bound):
    order = list(Fitness)
    verdicts = [order.index(judge(Trials(faults, total), bound)) for faults in range(min(total, 50) + 1)]
    assert verdicts == sorted(verdicts)


@pytest.mark.parametrize("bound", sorted(set(BOUNDS.values())))
def test_the_number_that_it_names_is_enough_and_one_less_is_not(bound):
    needed = faultless_needed(bound)
    assert judge(Trials(0, needed), bound) is Fitness.FIT
    assert judge(Trials(0, needed - 1), bound) is Fitness.NOT_SHOWN


def test_it_has_three_verdicts():
    good = {fault: Trials(0, faultless_needed(bound)) for fault, bound in BOUNDS.items()}
    assert check_sequentially(good).fitness is Fitness.FIT
    for fault in BOUNDS:
        assert check_sequentially({**good, fault: Trials(0, 3)}).fitness is Fitness.NOT_SHOWN
        assert check_sequentially({**good, fault: Trials(300, 400)}).fitness is Fitness.UNFIT
    assert check_sequentially({}).fitness is Fitness.NOT_SHOWN


def test_it_counts_each_fault_among_what_it_is_a_share_of():
    truth = np.array([True, True, True, False, False, False, False])
    near = np.array([False, False, False, True, True, False, False])
    probability = np.array([0.9, 0.3, 0.8, 0.9, 0.1, 0.2, 0.85])
    trials = trials_of_success(truth, near, probability, probability >= 0.5)
    assert trials["failures called a success"] == (2, 4)
    assert trials["near misses called a success"] == (1, 2)
    assert trials["false among the called successes"] == (2, 4)
    assert trials["successes missed"] == (1, 3)
    assert trials["pairs of a success and a failure in the wrong order"] == (1, 3)  # a tie is wrong, too
    assert set(trials) == set(BOUNDS)


def report(gate, sequential):
    gates = [GateResult("choosing episodes to keep", ()), GateResult(ENDING_EPISODES, (ConditionResult(gate, "x"),))]
    test = None if sequential is None else GateResult(USE, (ConditionResult(sequential, "y"),))
    return Report(QueryKind.SUCCESS, 0, {}, 0, {}, gates, (), test)


@pytest.mark.parametrize("gate", list(Fitness))
@pytest.mark.parametrize("sequential", [None, *Fitness])
def test_the_verdict_on_rewards_is_that_of_the_gate_unless_it_shows_nothing_and_the_test_does(gate, sequential):
    verdict = verdict_of(report(gate, sequential))
    opened = gate is Fitness.NOT_SHOWN and sequential is Fitness.FIT
    assert verdict.fitness is (Fitness.FIT if opened else gate)
    assert (verdict.use == USE) == opened
