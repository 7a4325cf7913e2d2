"""Progress has to tell more than the time: no clock passes, whatever the lengths of the episodes tell."""

import math

import numpy as np
import pytest

from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.beyond_a_clock import beyond_a_clock
from robot_rl.reward.validation.gates import GATES, Condition, Fitness
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.reward.validation.report import make_report

(CONDITION,) = [one for one in GATES[QueryKind.PROGRESS]["dense shaping"] if one.figure == "beyond_a_clock"]


def episodes(count, *, early):
    """Return success, and steps of each episode: successes end early if so."""
    success = np.arange(count) % 2 == 0
    lengths = np.random.default_rng(0).integers(20, 40, count) + (60 * ~success if early else 0)
    return success, [np.linspace(0, length, 6).astype(int) for length in lengths]


CLOCKS = {
    "elapsed time": lambda rows: rows / 100,
    "its square root": lambda rows: np.sqrt(rows / 100),
    "elapsed share": lambda rows: np.arange(len(rows)) / (len(rows) - 1),
    "square of the share": lambda rows: (np.arange(len(rows)) / (len(rows) - 1)) ** 2,
}


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("clock", CLOCKS)
def test_no_clock_passes_even_where_the_length_tells_a_success(clock, early):
    success, rows = episodes(400, early=early)
    found = beyond_a_clock(success, rows, [CLOCKS[clock](steps) for steps in rows])
    assert CONDITION.check({"beyond_a_clock": found}).fitness is not Fitness.FIT
    assert found.value < CONDITION.at_least


@pytest.mark.parametrize("early", [False, True])
def test_progress_that_stalls_in_failures_passes(early):
    success, rows = episodes(60, early=early)
    values = [np.linspace(0, 1.0 if good else 0.2, 6) for good in success]
    found = beyond_a_clock(success, rows, values)
    assert CONDITION.check({"beyond_a_clock": found}).fitness is Fitness.FIT


def test_the_chance_is_that_of_all_pairs_by_hand():
    success = np.array([True, False, False])
    rows = [np.array([0, 10]), np.array([0, 20]), np.array([0, 5])]
    values = [np.array([0.0, 0.8]), np.array([0.0, 1.0]), np.array([0.0, 0.4])]
    # After 10 steps 0.8 against 0.5, after 5 steps 0.4 against 0.4: 0.75. At the ends 0.8 against 1 and 0.4: 0.5.
    assert beyond_a_clock(success, rows, values).value == pytest.approx(0.5)


def test_a_few_faultless_episodes_show_nothing_and_none_is_unknown():
    for count, fitness in ((4, Fitness.NOT_SHOWN), (40, Fitness.FIT)):
        success, rows = episodes(count, early=False)
        found = beyond_a_clock(success, rows, [np.linspace(0, float(good), 6) for good in success])
        assert found.value == 1.0
        assert CONDITION.check({"beyond_a_clock": found}).fitness is fitness
    success, rows = episodes(10, early=False)
    assert math.isnan(beyond_a_clock(np.ones(10, bool), rows, [steps / 40 for steps in rows]).value)


def test_the_gate_for_shaping_calls_a_clock_unfit_for_that_reason():
    success, rows = episodes(100, early=True)
    labels = [
        Label("k", ({"episode_id": f"e{n}", "rows": steps.tolist()},), Answer(Status.OK, tuple(steps / 100)), "")
        for n, steps in enumerate(rows)
    ]
    truth = {f"e{n}": GroundTruth(bool(good)) for n, good in enumerate(success)}
    (gate,) = make_report(QueryKind.PROGRESS, labels, truth).gates
    assert gate.fitness is Fitness.UNFIT
    assert any(text.startswith("beyond_a_clock:") for text in gate.failed)
    held_out = make_report(QueryKind.PROGRESS, labels, truth, trained_on=["e0", "e1"])
    assert held_out.compared == 98


def test_the_bound_is_above_what_a_clock_has():
    assert isinstance(CONDITION, Condition)
    assert CONDITION.at_least > 0.5
    assert CONDITION.faultless_needed is None
