import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.config.labelling import BudgetConfig
from robot_rl.errors import BudgetSpentError
from robot_rl.reward.budget import Budget


def buy(budget, tokens=0, money=0.0):
    with budget.purchase() as bought:
        bought.tokens, bought.money = tokens, money


def test_nothing_is_limited_unless_asked():
    budget = Budget(BudgetConfig())
    for _ in range(100):
        buy(budget, 10**6, 10**6)
    assert (budget.calls, budget.tokens) == (100, 10**8)


def test_calls_stop_at_their_limit():
    budget = Budget(BudgetConfig(calls=2))
    buy(budget)
    buy(budget)
    with pytest.raises(BudgetSpentError, match="calls: 2 of 2 used"):
        buy(budget)


@pytest.mark.parametrize(("limits", "made"), [({"tokens": 350}, 3), ({"money": 0.35}, 3), ({"tokens": 100}, 1)])
def test_tokens_and_money_stop_before_they_are_passed(limits, made):
    budget = Budget(BudgetConfig(**limits))
    for _ in range(made):
        buy(budget, 100, 0.1)
    with pytest.raises(BudgetSpentError):
        buy(budget, 100, 0.1)
    assert budget.tokens == made * 100


def test_calls_under_way_are_reserved_for():
    """Four calls of 100 tokens that run side by side do not pass 350 together."""
    budget, entered, leave, refused = Budget(BudgetConfig(tokens=350)), threading.Semaphore(0), threading.Event(), []
    buy(budget, 100)

    def work():
        try:
            with budget.purchase() as bought:
                entered.release()
                leave.wait(10)
                bought.tokens = 100
        except BudgetSpentError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    entered.acquire()
    entered.acquire()
    while len(refused) < 2:
        threading.Event().wait(0.005)
    leave.set()
    for thread in threads:
        thread.join()
    assert budget.tokens == 300


def test_seconds_stop_at_their_limit():
    clock = FakeClock()
    budget = Budget(BudgetConfig(seconds=5), clock)
    clock.sleep_until(4 * NS_PER_S)
    buy(budget)
    assert budget.seconds_left == 1.0
    clock.sleep_until(5 * NS_PER_S)
    with pytest.raises(BudgetSpentError, match="seconds: 5 of 5 used"):
        buy(budget)
    assert budget.seconds_left == 0.0


@given(first=st.integers(1, 200), growth=st.integers(0, 100), spare=st.integers(0, 5000))
def test_a_use_that_grows_steadily_stays_within_the_limit(first, growth, spare):
    """Calls that grew passed the limit by half, as each was taken to be as large as the largest before it."""
    limit = 2 * first + growth + spare  # of the first two calls nobody knows how they grow
    budget, uses = Budget(BudgetConfig(tokens=limit)), itertools.count(first, growth)
    with pytest.raises(BudgetSpentError):
        while True:
            buy(budget, next(uses))
    assert budget.tokens <= limit


@given(most=st.integers(1, 500), limit=st.integers(1, 3000))
def test_with_the_most_of_each_call_stated_no_limit_is_passed_from_the_first(most, limit):
    budget = Budget(BudgetConfig(tokens=limit))
    made = 0
    with pytest.raises(BudgetSpentError):
        while True:
            with budget.purchase(most_tokens=most) as bought:
                bought.tokens = most
            made += 1
    assert made == limit // most
    assert budget.tokens <= limit


def test_a_call_whose_use_stays_unknown_counts_as_the_most_that_was_stated():
    budget = Budget(BudgetConfig(money=1.0))
    with pytest.raises(OSError, match="gone"), budget.purchase(100, 0.3):
        raise OSError("gone")
    assert (budget.tokens, budget.money) == (100, 0.3)
    with budget.purchase(100, 0.3) as bought:
        bought.tokens, bought.money = 0, 0.0
    assert (budget.tokens, budget.money) == (100, 0.3)


@pytest.mark.parametrize("use", [-1, float("nan"), float("inf"), -float("inf")])
def test_a_use_that_no_call_can_have_is_an_error_and_lifts_no_limit(use):
    budget = Budget(BudgetConfig(tokens=100, money=1.0))
    with pytest.raises(ValueError, match="a use is a finite number"), budget.purchase(60, 0.6) as bought:
        bought.money = use
    assert (budget.tokens, budget.money) == (60, 0.6)


def test_a_refused_call_is_remembered():
    """The loop that checks between its rounds ends then, though a smaller call would still fit."""
    budget = Budget(BudgetConfig(tokens=100))
    with pytest.raises(BudgetSpentError), budget.purchase(most_tokens=200):
        pass
    with pytest.raises(BudgetSpentError, match="may take 200"):
        budget.check()
