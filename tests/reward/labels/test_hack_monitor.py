import numpy as np
import pytest

from robot_rl.reward.labels.hack_monitor import HackMonitor

EPISODES_PER_HOUR = 360
"""Of ten seconds each."""


def first_alarm(error, seed, episodes, success=0.3):
    """Episode at which a labeller with this share of false positives raises an alarm; None if it never does."""
    rng, monitor = np.random.default_rng(seed), HackMonitor()
    for number in range(episodes):
        succeeded = bool(rng.uniform() < success)
        labelled = succeeded or bool(rng.uniform() < error)
        if monitor.add(labelled, succeeded) is not None:
            return number
    return None


def test_a_labeller_that_rewards_a_tenth_of_the_failures_is_noticed_within_an_hour_of_robot_time():
    found = [first_alarm(0.10, seed, EPISODES_PER_HOUR) for seed in range(200)]
    assert sum(one is not None for one in found) >= 190
    assert np.median([one for one in found if one is not None]) < 200


def test_a_good_one_is_left_in_peace():
    assert sum(first_alarm(0.01, seed, EPISODES_PER_HOUR) is not None for seed in range(200)) <= 4
    assert first_alarm(0.0, 0, 5000) is None


def test_it_notices_when_a_good_one_turns_bad():
    monitor = HackMonitor()
    assert all(monitor.add(False, False) is None for _ in range(1000))
    alarms = [monitor.add(True, False) for _ in range(6)]
    (alarm,) = [alarm for alarm in alarms if alarm]
    assert (alarm.rewarded, alarm.failures) == (5, 1005)
    assert "look at these episodes" in str(alarm)


@pytest.mark.parametrize("labelled", [True, False])
def test_successes_say_nothing_about_false_positives(labelled):
    monitor = HackMonitor()
    assert all(monitor.add(labelled, True) is None for _ in range(100))
    assert (monitor.judged, monitor.alarms) == (100, 0)
