"""Whose turn it is follows from what happened, and a person is called only where no task can begin or succeed."""

import pytest

from robot_rl.practice.turns import Turns

FREE = {"there": None, "back": None, "alone": None}


def played(turns, *successes):
    order = []
    for success in successes:
        assert turns.stuck(FREE) is None
        order.append(turns.next)
        turns.after(turns.next, success=success, seconds=20.0)
    return order


def test_the_turn_passes_after_a_success_and_stays_after_a_failure():
    turns = Turns(("there", "back"), patience=1e9)
    assert played(turns, True, True, False, False, True, True) == ["there", "back", "there", "there", "there", "back"]


def test_a_task_that_cannot_begin_passes_its_turn_on_and_without_any_a_person_is_needed():
    turns = Turns(("there", "back"), patience=1e9)
    assert turns.stuck({"there": "no cube", "back": None}) is None
    assert turns.next == "back"
    assert turns.stuck({"there": "no cube", "back": "no bin"}) == (
        "there cannot begin: no cube; back cannot begin: no bin"
    )


@pytest.mark.parametrize("success", [True, False])
def test_patience_counts_the_robot_time_since_the_last_success_of_any_task(success):
    turns = Turns(("there", "back"), patience=100.0)
    played(turns, True, False, False, False, False)
    turns.after(turns.next, success=success, seconds=20.0)
    assert (turns.stuck(FREE) is None) is success
    turns.helped()
    assert turns.stuck(FREE) is None


def test_one_task_alone_is_always_next():
    assert played(Turns(("alone",), patience=1e9), True, False, True) == ["alone"] * 3
