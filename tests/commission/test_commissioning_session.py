"""Commissioning finds the defect that an arm has, names it, and stops before what would be unsafe with it."""

import numpy as np
import pytest
from lockstep_arm import LockstepArm

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.session import TRIALS, CommissioningSession
from robot_rl.config.command_limits import CommandLimits
from robot_rl.errors import RobotLostError


def commissioned(arm, consent=lambda text: True, **facts):
    facts = {"has_gripper": True} | facts
    under_trial = ArmUnderTrial(arm, arm.clock, CommandLimits(), **facts)
    outcome = CommissioningSession(under_trial, consent).run()
    results = {result.name: result for result in outcome.results}
    assert len(results) == len(outcome.results)
    assert all(result.cure for result in outcome.results if result.severity != "ok")
    return results, outcome


def faults(results):
    return {name for name, result in results.items() if result.severity == "fault"}


def pressing(**defects):
    """An arm on which somebody presses in the trial of the wrench; the person is the consent."""
    arm = LockstepArm(**defects)

    def consent(text):
        if "press the tool down" in text:
            arm.press_at = arm.clock.now() / 1e9 + 3.0
        return True

    return arm, consent


@pytest.fixture(scope="module")
def healthy():
    arm, consent = pressing(noise=5e-5)
    return *commissioned(arm, consent), arm


def test_a_healthy_arm_has_no_fault_and_no_note(healthy):
    results, outcome, arm = healthy
    assert {name: result.severity for name, result in results.items() if result.severity != "ok"} == {}
    assert results["lag z"].value == pytest.approx(50, abs=60)
    assert results["hold"].value < 1.0
    assert results["gripper closing"].value == pytest.approx(0.8, abs=0.2)
    assert {"hold", "axis x", "limit -y", "expiry", "stop", "press"} <= outcome.traces.keys()
    assert np.linalg.norm(arm.position - arm.start) < 0.1 and arm.stops


def test_all_six_limits_are_visited_and_none_is_passed(healthy):
    _, outcome, _ = healthy
    low, high = CommandLimits().box_low, CommandLimits().box_high
    for number, axis in enumerate("xyz"):
        assert outcome.traces[f"limit -{axis}"].position[:, number].min() == pytest.approx(low[number], abs=2e-3)
        assert outcome.traces[f"limit +{axis}"].position[:, number].max() == pytest.approx(high[number], abs=2e-3)


def test_it_never_moves_faster_than_a_tenth(healthy):
    _, outcome, _ = healthy
    for name, trace in outcome.traces.items():
        if name.startswith(("axis", "limit")):
            steps = np.linalg.norm(np.diff(trace.target, axis=0), axis=1)
            assert steps.max() <= 1.01 * 0.1 * CommandLimits().max_speed * 0.1 + 1e-9, name


def test_a_sagging_arm_is_refused_and_the_payload_named():
    arm = LockstepArm(sag=0.005)
    results, _ = commissioned(arm)
    assert faults(results) == {"hold"} and "sinks" in results["hold"].text and "payload" in results["hold"].cure
    assert results["box"].text.startswith("left out")
    assert arm.clock.now() < 8e9  # nothing moved after it


def test_an_arm_that_settles_for_seconds_after_its_motors_came_on_does_not_drift():
    results, _ = commissioned(LockstepArm(settles=3))
    assert results["hold"].severity == "ok" and results["hold"].value < 0.1
    results, _ = commissioned(LockstepArm(settles=12))
    assert faults(results) == {"hold"}


@pytest.mark.parametrize(
    ("defects", "name", "named"),
    [
        ({"inverted": "y"}, "direction y", "inverted"),
        ({"exchanged": True}, "direction x", "exchanged"),
        ({"dead_time": 0.7}, "lag x", "late"),
        ({"tau": 5.0}, "direction x", "stiffness"),
        ({"holds": False}, "expiry", "still moves"),
    ],
)
def test_each_defect_is_named_and_ends_the_session(defects, name, named):
    results, _ = commissioned(LockstepArm(**defects))
    assert name in faults(results), results
    assert named in f"{results[name].text} {results[name].cure}"
    assert results["box"].text.startswith("left out")


def test_a_limit_that_does_not_hold_stops_the_arm_just_behind_it():
    results, outcome = commissioned(LockstepArm(box=None))
    assert faults(results) == {"limit -x"} and "does not hold" in results["limit -x"].text
    assert outcome.traces["limit -x"].position[:, 0].min() > 0.3 - 0.012


@pytest.mark.parametrize(("sign", "severity"), [(1.0, "ok"), (-1.0, "fault")])
def test_the_sign_of_the_wrench(sign, severity):
    arm, consent = pressing(force_sign=sign)
    under_trial = ArmUnderTrial(arm, arm.clock, CommandLimits())
    (result,) = CommissioningSession(under_trial, consent, (TRIALS[5],)).run().results
    assert result.severity == severity and ("sign is wrong" in result.cure) == (severity == "fault")


def test_a_press_that_never_comes_and_an_arm_without_a_sensor_are_notes():
    for measures in (True, False):
        arm = LockstepArm()
        under_trial = ArmUnderTrial(arm, arm.clock, CommandLimits(), measures_wrench=measures)
        (result,) = CommissioningSession(under_trial, lambda text: True, (TRIALS[5],)).run().results
        assert result.severity == "note"


def test_a_slow_gripper_and_one_that_does_not_move():
    for speed, severity in ((0.04, "note"), (0.001, "fault")):
        arm = LockstepArm(gripper_speed=speed)
        under_trial = ArmUnderTrial(arm, arm.clock, CommandLimits(), has_gripper=True)
        results = CommissioningSession(under_trial, lambda text: True, (TRIALS[6],)).run().results
        assert {result.severity for result in results} == {severity}


def test_without_consent_nothing_moves():
    arm = LockstepArm()
    results, _ = commissioned(arm, lambda text: False)
    assert arm.commands == 0 and {result.severity for result in results.values()} == {"note"}


def test_a_lost_arm_is_a_fault_with_its_reason():
    arm = LockstepArm()
    read = arm.read

    def lost():
        if arm.clock.now() > 2e9:
            raise RobotLostError("the cable is out")
        return read()

    arm.read = lost
    results, _ = commissioned(arm)
    assert "the cable is out" in results["hold"].text and arm.stops


def test_a_person_who_takes_back_the_consent_stops_the_arm():
    arm = LockstepArm()

    def check():
        if arm.clock.now() > 1e9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commissioned(arm, check=check)
    assert arm.stops == 1
