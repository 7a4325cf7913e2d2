import itertools

import numpy as np
import pytest
from play import always, play, stage

from robot_rl.config.operator_profile import CallConfig, InterventionConfig
from robot_rl.data.schema import Source
from robot_rl.env.registry import task_names
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose
from sim.operator import InsertionOperator, InterventionHabit, OperatorSkill
from sim.tasks import peg_insert

FLAWLESS = OperatorSkill(0.0, 0.0, 0.0, (1.0, 1.0), 0.0, 0.0, 0)


def runs(steps, arm=None):
    """Lengths of the stretches led by the policy and by the operator, in order: (by operator, length).

    Of several arms, those of one, by its number.
    """
    sources = [step.source if arm is None else step.arm_sources[arm] for step in steps]
    return [(led, len(list(group))) for led, group in itertools.groupby(source != Source.POLICY for source in sources)]


@pytest.mark.parametrize("task", task_names())
def test_helps_a_policy_that_does_nothing_in_bursts_and_hands_back(task):
    env, cell = stage(task, interventions=True)
    hands = [*getattr(cell.operator, "hands", {"": cell.operator}).values()]
    bursts, rests, helped = [], [], 0
    seeds = range(3 if len(hands) == 1 else 1)  # two arms, and what is elastic between them, take long
    for seed in seeds:
        steps, led = play(env, seed).steps, False
        for number, hand in enumerate(hands):
            played = runs(steps, number if len(hands) > 1 else None)
            assert not played[0][0], "it gives the policy a chance first"
            assert played[0][1] >= hand.habit.stall_steps
            led |= any(leads for leads, _ in played)
            bursts += [length for leads, length in played[:-1] if leads]  # the last may be cut by the end
            rests += [length for leads, length in played[1:-1] if not leads]
        helped += led
    habit = hands[0].habit
    assert helped == len(seeds)
    assert bursts
    assert all(habit.burst[0] <= length <= habit.burst[1] for length in bursts)
    assert all(length >= habit.rest for length in rests)


def test_when_called_it_leads_for_one_burst_and_a_call_while_it_leads_counts_no_more():
    cell = peg_insert.make(WorkcellOptions(intervention=InterventionConfig(call=CallConfig(only=True))))
    operator, state = cell.operator, (cell.task.reset(0), cell.io.read())[1]
    operator.reset(0, demonstrate=False)

    def leads(steps):
        return [operator.act(state, Pose.identity()) is not None for _ in range(steps)]

    assert not any(leads(100)), "it stands still, and nobody has called"
    operator.call_for_help()
    first = leads(1)
    operator.call_for_help()
    burst = [*first, *leads(100)]
    shortest, longest = operator.habit.burst
    assert shortest <= sum(burst) <= longest
    assert burst == sorted(burst, reverse=True), "once"


def test_bursts_have_all_lengths_of_the_habit_and_no_other():
    cell = peg_insert.make(WorkcellOptions())
    habit = InterventionHabit(stall_steps=1, chance=1.0, burst=(1, 3), rest=2)
    operator = InsertionOperator(cell.task.spec, lambda: cell.task.T_base_hole, 0.025, habit=habit)
    cell.task.reset(0)
    state = cell.io.read()
    operator.reset(0, demonstrate=False)
    led = [operator.act(state, Pose.identity()) is not None for _ in range(400)]
    groups = [(key, len(list(group))) for key, group in itertools.groupby(led)][1:-1]
    assert {length for key, length in groups if key} == {1, 2, 3}
    assert all(length >= habit.rest for key, length in groups if not key)


@pytest.mark.slow
def test_help_makes_a_difference():
    helped, _ = stage("peg_insert", interventions=True)
    alone, _ = stage("peg_insert")
    successes = (seed for seed in range(10) if play(helped, seed).success)
    assert len(list(itertools.islice(successes, 3))) == 3
    assert not any(play(alone, seed).success for seed in range(4))


def test_does_not_disturb_a_policy_that_gets_on():
    """Replays demonstrations as the policy: the operator watches somebody as good as itself."""
    env, _ = stage("reach", interventions=True)
    led = total = 0
    for seed in range(5):
        actions = iter([step.action for step in play(env, seed, demonstrate=True).steps])
        played = play(env, seed, lambda _, actions=actions: next(actions, np.zeros(3, np.float32)))
        led += sum(step.source != Source.POLICY for step in played.steps)
        total += len(played.steps)
    assert led <= 0.1 * total


@pytest.mark.parametrize("task", ["cube_lift", "relocate_forward", "usb_pick_insert", "handover"])
def test_does_not_disturb_who_does_what_it_would_do_itself(task):
    """Neither a lift on the way to a place, nor one arm's waiting for the other, is a lack of progress."""
    env, _ = stage(task, interventions=True)
    actions = iter([step.action for step in play(env, 100, demonstrate=True).steps])
    again = play(env, 100, lambda observation: next(actions))
    assert again.success
    assert not any(led for led, _ in runs(again.steps))


def test_large_force_makes_it_take_over_at_once():
    cell = peg_insert.make(WorkcellOptions())
    operator = InsertionOperator(cell.task.spec, lambda: cell.task.T_base_hole, 0.025)
    cell.task.reset(0)
    calm = cell.io.read()

    def first_steps(force):
        taken = []
        for seed in range(100):
            operator.reset(seed, demonstrate=False)
            operator.act(calm, Pose.identity())
            state = type(calm)(**{**vars(calm), "peak_force": force})
            taken.append(operator.act(state, Pose.identity()) is not None)
        return np.mean(taken)

    habit = operator.habit
    assert first_steps(habit.force - 1.0) == 0.0
    assert first_steps(habit.force + 1.0) == pytest.approx(habit.chance, abs=0.15)


def test_demonstrations_are_about_half_as_fast_as_possible():
    def mean_length(skill):
        cell = peg_insert.make(WorkcellOptions())
        if skill is not None:
            cell.operator.skill = skill
        env = RobotEnv(cell)
        return np.mean([len(play(env, seed, demonstrate=True).steps) for seed in range(4)])

    ratio = mean_length(None) / mean_length(FLAWLESS)
    assert 1.4 < ratio < 3.0


def test_it_sees_the_scene_with_an_error_that_changes_when_it_looks_again():
    cell = peg_insert.make(WorkcellOptions())
    operator, truth = cell.operator, Pose(np.array([0.5, 0.0, 0.06]), np.array([1.0, 0.0, 0.0, 0.0]))
    errors = []
    for seed in range(400):
        operator.reset(seed, demonstrate=True)
        errors.append(operator.perceived(truth).position - truth.position)
    assert np.std(errors, axis=0) == pytest.approx(operator.skill.position_error, rel=0.15)


def test_the_same_seed_makes_the_same_demonstration_and_another_a_different_one():
    env, _ = stage("peg_insert")
    actions = [[step.action.tolist() for step in play(env, seed, demonstrate=True).steps] for seed in (1, 2, 1)]
    assert actions[0] == actions[2]
    assert actions[0] != actions[1]


def test_actions_are_valid_even_when_everything_is_far_away():
    env, cell = stage("peg_insert")
    cell.task.T_base_hole = Pose(np.array([9.0, 9.0, -9.0]), np.array([0.0, 0.0, 0.0, 1.0]))
    cell.operator.reset(0, demonstrate=True)
    cell.task.reset(0)
    action = cell.operator.act(cell.io.read(), Pose.identity())
    assert np.abs(action).max() <= 1.0
    assert always(env)(None).shape == action.shape
