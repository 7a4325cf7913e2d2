"""A budget under threads: no limit is ever passed, and what was used is what was counted."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.config.reward import BudgetConfig
from robot_rl.errors import BudgetSpentError
from robot_rl.reward.budget import Budget


class Shop:
    """Threads that buy calls of a size until the budget is spent; it counts what really happened."""

    def __init__(self, budget, sizes):
        self.budget, self.sizes, self.used, self.done, self.most, self._open = budget, sizes, 0, 0, 0, 0
        self._lock = threading.Lock()

    def work(self, number):
        try:
            with self.budget.purchase() as bought:
                size = self.sizes[number % len(self.sizes)]
                with self._lock:
                    self._open += 1
                    self.most = max(self.most, self._open)
                threading.Event().wait(0.0002)
                with self._lock:
                    self._open -= 1
                    self.used += size
                    self.done += 1
                bought.tokens, bought.money = size, size / 1000
        except BudgetSpentError:
            return False
        return True

    def run(self, threads, calls):
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self.work, range(calls)))


@settings(max_examples=20)
@given(limit=st.integers(1, 30), threads=st.integers(1, 8))
def test_exactly_as_many_calls_as_allowed_are_made(limit, threads):
    budget = Budget(BudgetConfig(calls=limit))
    done = Shop(budget, [1]).run(threads, 40)
    assert sum(done) == budget.calls == limit


@settings(max_examples=20)
@given(limit=st.integers(50, 2000), size=st.integers(1, 200), threads=st.integers(1, 8))
def test_calls_of_one_size_never_pass_the_limit_on_tokens(limit, size, threads):
    budget = Budget(BudgetConfig(tokens=limit))
    shop = Shop(budget, [size])
    shop.run(threads, 60)
    assert budget.tokens == shop.used
    if size <= limit:
        assert shop.used <= limit
        assert shop.used == size * min(60, limit // size), "and nothing is left that would have sufficed"
    else:
        assert shop.done == 1, "of the first call nobody knows the size"


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 100), min_size=1, max_size=10), threads=st.integers(1, 6))
def test_the_limit_is_passed_at_most_by_what_calls_exceed_all_before_them(sizes, threads):
    limit = 500
    budget = Budget(BudgetConfig(tokens=limit))
    shop = Shop(budget, sizes)
    shop.run(threads, 80)
    assert budget.tokens == shop.used
    assert shop.used <= limit + threads * (max(sizes) - min(sizes))


def test_with_a_limit_on_tokens_the_first_call_is_alone_and_others_are_not():
    shop = Shop(Budget(BudgetConfig(tokens=10**6)), [10])
    entered, leave, order = threading.Event(), threading.Event(), []

    def first():
        with shop.budget.purchase() as bought:
            entered.set()
            leave.wait(10)
            order.append("first")
            bought.tokens = 10

    def second():
        with shop.budget.purchase() as bought:
            order.append("second")
            bought.tokens = 10

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    entered.wait(10)
    threads[1].start()
    threading.Event().wait(0.05)
    assert order == []
    leave.set()
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second"]


def test_a_call_that_fails_gives_its_place_back():
    budget = Budget(BudgetConfig(tokens=100))
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"), budget.purchase():
            raise ValueError("broken")
    assert (budget.calls, budget.tokens) == (3, 0)
    with budget.purchase() as bought:
        bought.tokens = 40
    budget.check()


@given(st.floats(0.5, 100), st.floats(0, 200))
def test_time_that_is_left_and_used_add_up_to_the_limit(limit, passed):
    clock = FakeClock()
    budget = Budget(BudgetConfig(seconds=limit), clock)
    clock.sleep_until(clock.now() + round(passed * NS_PER_S))
    assert budget.seconds == pytest.approx(passed, abs=1e-6)
    assert budget.seconds_left == pytest.approx(max(0.0, limit - passed), abs=1e-6)
    if abs(passed - limit) > 1e-6:
        if passed < limit:
            budget.check()
        else:
            with pytest.raises(BudgetSpentError, match="seconds"):
                budget.check()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_money_is_the_sum_of_what_was_paid(prices):
    budget = Budget(BudgetConfig())
    for price in prices:
        with budget.purchase() as bought:
            bought.money = price
    assert budget.money == pytest.approx(np.sum(prices))
    assert not budget.limits_usage
    assert budget.seconds_left == float("inf")
