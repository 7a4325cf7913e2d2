"""Profiles of the scripted operator: each number changes what it names, and `ideal` changes nothing."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from play import always, play, stage

from robot_rl.config.load import load_config
from robot_rl.config.operator_profile import PROFILES, InterventionConfig
from robot_rl.data.schema import Source
from robot_rl.errors import ConfigError, RobotRLError
from robot_rl.geometry import Pose


@pytest.fixture(scope="module")
def reach():
    env, cell = stage("reach", interventions=True)
    yield env, cell.operator
    env.close()


def stretches(played):
    """Lengths of the stretches of an episode: (led by the operator, steps)."""
    led = [step.source != Source.POLICY for step in played.steps]
    return [(by, len(list(group))) for by, group in itertools.groupby(led)]


def helped(env, operator, seeds, **intervention):
    operator.use(InterventionConfig(**intervention))
    return [stretches(play(env, seed, always(env))) for seed in seeds]


def test_ideal_and_a_mixture_of_it_are_the_operator_of_the_task(reach):
    env, operator = reach
    operator.use(InterventionConfig())
    plain = [step.action.tolist() for step in play(env, 3).steps]
    operator.use(InterventionConfig(also=("ideal",), wrong=0.0))
    assert [step.action.tolist() for step in play(env, 3).steps] == plain
    assert InterventionConfig(also=("ideal",), wrong=0.0).as_the_task


def test_a_late_operator_takes_over_three_steps_later_and_leads_as_long(reach):
    env, operator = reach
    usual, late = (helped(env, operator, range(6), profile=name) for name in ("ideal", "late"))
    for before, after in zip(usual, late, strict=True):
        assert after[0] == (False, before[0][1] + 3)
        if len(before) > 2:
            assert after[1] == before[1]


def test_lengths_patience_and_attention_are_as_set(reach):
    env, operator = reach
    habit = operator.habit
    short = helped(env, operator, range(6), length=0.2, patience=0.5, readiness=2.0)
    assert all(played[0] == (False, habit.stall_steps // 2) for played in short)
    lengths = [steps for played in short for by, steps in played[:-1] if by]
    assert set(lengths) <= set(range(round(habit.burst[0] * 0.2), round(habit.burst[1] * 0.2) + 1))
    assert helped(env, operator, range(1), length=1e300, readiness=2.0), "a whole episode is the longest"
    watched = [len(played) > 1 for played in helped(env, operator, range(40), attention=0.3, readiness=2.0)]
    assert 0.1 < np.mean(watched) < 0.5
    assert not any(len(played) > 1 for played in helped(env, operator, range(5), attention=0.0))


def test_a_wrong_take_over_leads_to_a_place_beside_the_right_one(reach):
    env, operator = reach
    truth = Pose(np.array([0.5, 0.0, 0.2]), np.array([1.0, 0.0, 0.0, 0.0]))
    operator.use(InterventionConfig(profile="wrong", wrong_by=0.03, readiness=2.0))
    off = []
    for seed in range(60):
        _until_taken(env, seed)
        off.append(np.linalg.norm((operator.perceived(truth).position - truth.position)[:2]))
    assert np.mean(np.array(off) > 0.02) == pytest.approx(0.3, abs=0.15)
    assert max(off) == pytest.approx(0.03, abs=0.005)


def _until_taken(env, seed):
    env.start(seed, "one")
    while env.advance(np.zeros(3, np.float32)).recorded.source == Source.POLICY:
        pass


def test_demonstrations_are_the_same_with_all_profiles_that_know_the_scene(reach):
    env, operator = reach
    actions = []
    for name, profile in PROFILES.items():
        if profile.told != "scene":
            continue
        operator.use(InterventionConfig(profile=name))
        actions.append([step.action.tolist() for step in play(env, 1, demonstrate=True).steps])
    assert all(one == actions[0] for one in actions)


def test_a_mixture_draws_one_profile_for_each_episode():
    drawn = [InterventionConfig(also=("late", "late")).drawn(seed) for seed in range(300)]
    assert {profile.reaction_s for profile in drawn} == {0.0, 0.3}
    assert np.mean([profile.reaction_s > 0 for profile in drawn]) == pytest.approx(2 / 3, abs=0.08)
    assert InterventionConfig(profile="late", reaction_s=0.5).drawn(0).reaction_s == 0.5


@pytest.mark.parametrize(
    "setting",
    ["wrong=1.5", "reaction_s=-1", "length=0", "attention=nan", "minutes=-3", "profile=sleepy", "also=[ideal, sleepy]"],
)
def test_impossible_numbers_are_one_line_that_names_the_setting(setting):
    with pytest.raises(RobotRLError) as refused:
        load_config(None, [f"intervention.{setting}"])
    assert "\n" not in str(refused.value)
    assert f"intervention.{setting.partition('=')[0]}" in str(refused.value)


def test_an_environment_without_our_operator_refuses_a_profile():
    from robot_rl.config.consistency import check_consistent

    with pytest.raises(ConfigError, match=r"environment\.takeovers"):
        check_consistent(load_config(None, ["task=gym:Pendulum-v1", "intervention.profile=late"]))


def test_who_is_told_the_estimate_is_one_of_the_task_and_of_all_episodes(reach):
    _, operator = reach
    with pytest.raises(ConfigError, match=r"told=estimate with task=reach.*task=peg_hard"):
        operator.use(InterventionConfig(profile="searching"))
    mixed = InterventionConfig(profile="ideal", also=("searching",))
    with pytest.raises(ConfigError, match=r"also=\[searching\].*set intervention.told"):
        operator.use(mixed)
    operator.use(replace(mixed, told="scene"))
    assert replace(mixed, told="scene").as_the_task
    assert not InterventionConfig(told="estimate").as_the_task
