import time

import pytest

from robot_rl.clock import NS_PER_S, FakeClock, Rate, SystemClock, stands_still

MS = NS_PER_S // 1000


class Worker:
    """A loop body that takes as long as it is told."""

    def __init__(self, clock, rate):
        self.clock, self.rate = clock, rate

    def loop(self, durations_ms):
        wakes = []
        for duration in durations_ms:
            self.clock.sleep_until(self.clock.now() + duration * MS)
            self.rate.sleep()
            wakes.append(self.clock.now() // MS)
        return wakes


@pytest.fixture
def worker():
    clock = FakeClock()
    return Worker(clock, Rate(clock, 0.1))


def test_deadlines_are_absolute_so_a_slow_step_delays_no_later_one(worker):
    assert worker.loop([10, 90, 10]) == [100, 200, 300]
    assert worker.loop([150, 20, 20]) == [450, 500, 600]  # late by half a period: caught up at the next
    assert worker.rate.overruns == 0


def test_deadlines_that_are_lost_are_skipped_and_counted(worker):
    # One step of 350 ms: the deadlines at 100, 200 and 300 are gone, the grid stays.
    assert worker.loop([350, 10, 10]) == [350, 400, 500]
    assert worker.rate.overruns == 1


def test_restart_counts_from_now_and_forgets_overruns(worker):
    worker.loop([1050])
    worker.rate.restart()
    assert worker.rate.overruns == 0
    assert worker.loop([10]) == [1150]


def test_no_loop_runs_faster_than_its_rate_over_time(worker):
    wakes = worker.loop([130, 10, 250, 5, 90, 20, 310, 1] * 5)
    assert len(wakes) <= (wakes[-1] + 100) / 100


def test_a_fake_clock_never_goes_back():
    clock = FakeClock(start=5)
    clock.sleep_until(3)
    assert clock.now() == 5
    assert stands_still(clock, probe=0.001)


def test_the_system_clock_sleeps_until_the_stamp_and_not_before():
    clock = SystemClock()
    start, wall = clock.now(), time.monotonic()
    clock.sleep_until(start + 20 * MS)
    assert clock.now() >= start + 20 * MS
    assert time.monotonic() - wall >= 0.02
    before = clock.now()
    clock.sleep_until(start)  # passed already
    assert clock.now() - before < NS_PER_S
    assert not stands_still(clock, probe=0.001)
