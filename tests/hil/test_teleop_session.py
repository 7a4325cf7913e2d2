"""Requests of an operator: in order, from any thread, and never lost without a remark."""

import threading

import pytest

from robot_rl.errors import UnknownNameError
from robot_rl.hil.teleop_session import REQUESTS, Requests


def test_they_come_in_order_and_what_does_not_fit_is_told():
    remarks = []
    requests = Requests(remarks.append)
    assert requests.next(REQUESTS) is None
    for name in ("redo", "success", "start"):
        requests.add(name)
    assert requests
    assert requests.next(("success", "stop")) == "success"
    assert remarks == ["cannot redo now; possible: success, stop"]
    assert requests.next(("stop",)) is None
    assert remarks[1:] == ["cannot start now; possible: stop"]
    assert not requests


def test_what_nobody_can_ask_for_is_refused():
    requests = Requests(print)
    with pytest.raises(UnknownNameError, match=r"dance.*start, stop"):
        requests.add("dance")
    assert not requests


def test_none_is_lost_between_threads():
    requests, taken = Requests(print), []
    threads = [threading.Thread(target=lambda: [requests.add("stop") for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or requests:
        taken += [name for name in [requests.next(("stop",))] if name is not None]
    assert taken == ["stop"] * 4000
