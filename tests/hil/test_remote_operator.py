"""An operator in another process: the rules are those of an operator here, and a stop ends the episode."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from fakes import fake_workcell

from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import StepOrderError
from robot_rl.hil.remote_operator import RemoteOperator
from robot_rl.run.demonstrate import record_demonstrations

FORWARD = np.array([0.5, 0.0, 0.0], np.float32)


class AlwaysSuccess:
    """An outcome filter, as a classifier is one."""

    def begin(self):
        pass

    def judge(self, outcome, observation, spec):
        return replace(outcome, success=True, reward=1.0, judge="classifier")


@pytest.fixture
def environment():
    """Open environments that an operator supervises, until the end of the test."""
    with contextlib.ExitStack() as stack:

        def open_one(person, cell=None, **options):
            settings = {"interventions": False, "overrule_s": 0.0} | options
            return stack.enter_context(person.environment(cell or fake_workcell(), WorkcellOptions(), **settings))

        yield open_one


def test_an_outcome_ends_the_running_episode(environment):
    person = RemoteOperator()
    person.end_episode(True)  # before there is anything that it could be about
    env = environment(person)
    env.reset(seed=0)
    assert env.step(FORWARD)[2:4] == (False, False)
    person.end_episode(True)
    assert env.step(FORWARD)[1:4] == (1.0, True, False)
    env.reset(seed=1)
    person.end_episode(None, "reset by the operator")
    *_, truncated, info = env.step(FORWARD)
    assert (truncated, info["step"].cut) == (True, "reset by the operator")


def test_a_latched_stop_cuts_the_episode_and_no_other_begins_until_it_is_released(environment):
    person = RemoteOperator()
    assert person.may_start(), "before there is a robot, nobody holds it"
    person.set_stop("emergency stop: by hand")
    assert not person.may_start(), "a stop counts without one, too"
    env = environment(person)
    assert not person.may_start()
    person.set_stop("")
    assert person.may_start()
    env.reset(seed=0)
    person.set_stop("emergency stop: by hand")
    *_, truncated, info = env.step(FORWARD)
    assert (truncated, info["step"].cut, info["step"].recorded.source) == (True, "emergency stop: by hand", Source.HOLD)
    assert not person.may_start()


def test_a_classifier_waits_for_an_answer_only_where_somebody_receives_the_question(environment):
    person, cell = RemoteOperator(), fake_workcell()
    env = environment(person, replace(cell, judges=(AlwaysSuccess(),)), overrule_s=60.0)
    env.reset(seed=0)
    assert env.step(FORWARD)[4]["step"].recorded.reward_source == "classifier", "at once"
    person.set_listening(True)
    env.reset(seed=0)
    person.end_episode(False)  # so that nothing waits
    info = env.step(FORWARD)[4]
    assert (info["step"].recorded.reward_source, info["step"].overruled, info["step"].failure) == (
        "operator",
        "classifier",
        "operator",
    )


@pytest.mark.parametrize(("source", "blended"), [(Source.HUMAN, True), (Source.SCRIPT, False)])
def test_control_changes_hands_without_a_jump_where_a_person_leads(environment, source, blended):
    person = RemoteOperator()
    env = environment(person, replace(fake_workcell(), operator_source=source), interventions=True)
    env.reset(seed=0)
    executed = [env.step(FORWARD)[4]["step"].recorded.action for _ in range(7)]  # the operator takes over after five
    largest = max(np.linalg.norm(np.diff(executed[4:], axis=0), axis=1))
    limit = HandoverLimits().linear * env.spec_task.control_period**2 / env.spec_task.action_translation
    assert (largest <= limit + 1e-6) == blended


def test_a_demonstration_that_a_person_cut_goes_aside_and_is_made_again(environment, tmp_path):
    person, remarks, cell = RemoteOperator(), [], fake_workcell()
    env, polls = environment(person, cell), iter([False, True, True])  # the arm is held, then free

    class FirstIsWrong(type(cell.operator)):
        def act(self, state, T_base_reset):
            if not remarks:
                person.end_episode(None, "reset by the operator")
            return super().act(state, T_base_reset)

    cell.operator.__class__ = FirstIsWrong
    with EpisodeStore.create(tmp_path / "store", {}) as store:
        record_demonstrations(env, store, episodes=1, seed=0, may_start=lambda: next(polls), log=remarks.append)
        (kept,) = store.summaries()
        assert (kept.success, kept.facts.cut is not None) == (True, False)
        assert remarks == [f"{kept.episode_id} was moved aside: reset by the operator"]
    assert len([path for path in (tmp_path / "store" / "aside").rglob("*") if path.suffix == ".zip"]) == 1


def test_without_a_workcell_there_is_nobody_to_demonstrate():
    with pytest.raises(StepOrderError, match="no environment yet"):
        _ = RemoteOperator().demonstrator
