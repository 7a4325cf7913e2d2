import threading

import pytest

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
