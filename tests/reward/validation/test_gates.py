"""Gates: what is more evidence never makes a result worse, and no result is better than its figures."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.figures import Figure, share
from robot_rl.reward.validation.gates import (
    ENDING_EPISODES,
    GATES,
    Condition,
    ConditionResult,
    Fitness,
    GateResult,
    check_conditions,
    check_gates,
)

ORDER = list(Fitness)
REAL = st.floats(0, 1)


@st.composite
def figures_in_order(draw):
    low, value, high = sorted(draw(st.tuples(REAL, REAL, REAL)))
    return Figure(value, low, high)


@st.composite
def conditions(draw):
    bound = draw(REAL)
    return Condition("f", at_least=bound) if draw(st.booleans()) else Condition("f", at_most=bound)


def fitness(condition, figure):
    return condition.check({"f": figure}).fitness


@given(conditions(), figures_in_order())
def test_a_result_follows_from_the_figure_and_the_worse_end_of_its_interval(condition, figure):
    worse = figure.low if condition.at_least is not None else figure.high
    wanted = (
        Fitness.FIT if condition.meets(worse) else Fitness.NOT_SHOWN if condition.meets(figure.value) else Fitness.UNFIT
    )
    assert fitness(condition, figure) is wanted


@given(conditions(), figures_in_order(), REAL)
def test_a_narrower_interval_about_the_same_figure_is_never_worse(condition, figure, share_of_width):
    narrow = Figure(  # not wider by a rounding error either
        figure.value,
        max(figure.low, figure.value - share_of_width * (figure.value - figure.low)),
        min(figure.high, figure.value + share_of_width * (figure.high - figure.value)),
    )
    assert ORDER.index(fitness(condition, narrow)) <= ORDER.index(fitness(condition, figure))


@given(conditions(), figures_in_order(), REAL)
def test_a_better_figure_is_never_worse(condition, figure, step):
    sign = 1 if condition.at_least is not None else -1
    better = Figure(*(value + sign * step for value in figure))
    assert ORDER.index(fitness(condition, better)) <= ORDER.index(fitness(condition, figure))


@given(conditions())
def test_what_is_not_known_is_neither_fit_nor_unfit(condition):
    for figures in ({}, {"f": Figure(math.nan, math.nan, math.nan)}):
        assert condition.check(figures).fitness is Fitness.NOT_SHOWN
        assert "not known" in condition.check(figures).text


@given(st.lists(st.sampled_from(Fitness), max_size=6))
def test_a_gate_is_as_fit_as_its_worst_condition(parts):
    result = GateResult("x", tuple(ConditionResult(one, f"{n}") for n, one in enumerate(parts)))
    assert result.fitness is max(parts, key=ORDER.index, default=Fitness.FIT)
    assert result.passed == (set(parts) <= {Fitness.FIT})
    assert len(result.failed) + len(result.unsure) == len(result.shortcomings) <= len(result.reasons) == len(parts)


@pytest.mark.parametrize("condition", GATES[QueryKind.SUCCESS][ENDING_EPISODES], ids=lambda one: one.figure)
def test_every_condition_of_the_strictest_gate_can_fail_it_alone(condition):
    perfect = {one.figure: Figure(*3 * (one.at_least or 0.0,)) for one in GATES[QueryKind.SUCCESS][ENDING_EPISODES]}
    gates = {gate.use: gate for gate in check_gates(QueryKind.SUCCESS, perfect)}
    assert gates[ENDING_EPISODES].passed
    bad = 0.0 if condition.at_least is not None else 2.0 * condition.at_most
    spoiled = check_gates(QueryKind.SUCCESS, {**perfect, condition.figure: Figure(bad, bad, bad)})
    (gate,) = [gate for gate in spoiled if gate.use == ENDING_EPISODES]
    assert gate.fitness is Fitness.UNFIT
    assert [text.split(":")[0] for text in gate.failed] == [condition.figure]


@pytest.mark.parametrize(
    "condition", [Condition("recall", at_least=0.9), Condition("near_miss_false_positive_rate", at_most=0.05)]
)
def test_the_number_of_faultless_episodes_that_it_names_is_enough_and_one_less_is_not(condition):
    def shown(count):
        return condition.check({condition.figure: share(count if condition.at_least is not None else 0, count)})

    needed = int(shown(3).text.split("; ")[1].split()[0])
    assert shown(needed).fitness is Fitness.FIT
    assert shown(needed - 1).fitness is Fitness.NOT_SHOWN


def test_a_figure_with_a_fault_or_that_is_no_share_names_no_number():
    assert "would do" not in Condition("recall", at_least=0.9).check({"recall": share(95, 100)}).text
    assert "would do" not in Condition("roc_auc", at_least=0.9).check({"roc_auc": Figure(1.0, 0.8, 1.0)}).text
    assert "no such episodes" in Condition("recall", at_least=0.9).check({"recall": share(0, 0)}).text


def test_causes_are_named_only_where_something_is_missing():
    condition = (Condition("f", at_least=0.5),)
    assert check_conditions("x", condition, {"f": Figure(1, 1, 1)}, ["dark"]).causes == ()
    assert check_conditions("x", condition, {"f": Figure(0, 0, 0)}, ["dark"]).causes == ("dark",)


def test_the_headline_names_result_and_use():
    lines = {
        one: str(GateResult("ending episodes", (ConditionResult(one, ""),)))
        for one in (Fitness.FIT, Fitness.NOT_SHOWN, Fitness.UNFIT)
    }
    assert lines[Fitness.FIT] == "FIT for ending episodes"
    assert lines[Fitness.NOT_SHOWN].startswith("NOT SHOWN to be fit for ending episodes")
    assert lines[Fitness.UNFIT] == "NOT FIT for ending episodes"


def test_certificates_of_older_revisions_are_read():
    assert Fitness("unproven") is Fitness.NOT_SHOWN
    with pytest.raises(ValueError, match="perhaps"):
        Fitness("perhaps")


def test_a_score_is_fit_for_nothing():
    assert check_gates(QueryKind.SCORE, {"roc_auc": Figure(1, 1, 1)}) == []
