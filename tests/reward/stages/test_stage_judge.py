"""Which stage an episode is in, and what happens where one fails, step by step by hand."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import fake_workcell

from robot_rl.data.schema import STAGE_PREFIX
from robot_rl.data.sparse_reward import stage_metrics
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import OPERATOR_JUDGE
from robot_rl.env.task import Outcome
from robot_rl.reward.stages.stage_judge import JudgedStage, StageJudge, judged_by_person, judged_by_task

SPEC = fake_workcell().task.spec
LOST = round(0.5 / SPEC.control_period)
"""Steps for which a lasting stage has to be missing."""


def judge(*, steps=0, retries=1, lasting=(), person=()):
    stages = [
        JudgedStage(name, judged_by_person if name in person else judged_by_task(name), name in person, name in lasting)
        for name in ("lifted", "aligned")
    ]
    made = StageJudge(stages, steps=steps, retries=retries)
    made.begin()
    return made


def flags(observation):
    return [float(observation[f"{STAGE_PREFIX}{name}"][0]) for name in ("lifted", "aligned")]


def step(made, *so, **outcome):
    """One step after which the task says that these stages are so."""
    told = stage_metrics(lifted="lifted" in so, aligned="aligned" in so)
    return made.judge(Outcome(**{"success": False, "reward": 0.0, "metrics": told, **outcome}), {}, SPEC)


def test_stages_are_reached_in_their_order():
    made = judge()
    seen = []
    for so in ((), ("aligned",), ("lifted", "aligned"), ("aligned",), ()):
        step(made, *so)
        seen.append((made.stage, flags(made.observe())))
    assert seen == [
        ("lifted", [0, 0]),
        ("lifted", [0, 0]),
        ("aligned", [1, 0]),
        ("success", [1, 1]),
        ("success", [1, 1]),
    ]
    made.begin()
    assert flags(made.observe()) == [0, 0]


def test_the_outcome_stays_what_others_decided_and_tells_of_the_stages():
    made = judge()
    outcome = step(made, "lifted", reward=0.25)
    assert (outcome.success, outcome.reward, outcome.failure) == (False, 0.25, None)
    assert outcome.metrics == {"reached_lifted": 1.0, "reached_aligned": 0.0, "stage_failures": 0.0}
    done = step(made, success=True, reward=1.0)
    assert (done.success, done.reward) == (True, 1.0)
    assert done.metrics["reached_aligned"] == 1.0, "who says that all is done says it of every stage"


def test_a_stage_that_takes_too_long_is_tried_again_and_then_ends_the_episode():
    made = judge(steps=3, retries=1)
    told = [step(made) for _ in range(6)]
    assert [one.failure for one in told] == [None] * 5 + ["stage: lifted took too long"]
    made.begin()
    assert [step(made, "lifted").failure, *(step(made).failure for _ in range(6))] == [
        *[None] * 6,
        "stage: aligned took too long",
    ]
    made.begin()
    for so in (("lifted",), ("aligned",), *[()] * 6):
        last = step(made, *so)
    assert last.failure == "stage: success took too long"


def test_a_lasting_stage_that_is_lost_is_done_again():
    made = judge(lasting=("lifted",), retries=1)
    step(made, "lifted")
    step(made, "lifted", "aligned")
    for _ in range(LOST - 1):
        step(made, "aligned")
    assert made.stage == "success", "grasps waver"
    step(made, "lifted")
    for _ in range(LOST):
        outcome = step(made)
    assert (made.stage, outcome.failure) == ("lifted", None)
    assert outcome.metrics["reached_aligned"] == 1.0, "it had been"
    assert flags(made.observe()) == [0, 0]
    step(made, "lifted")
    for _ in range(LOST):
        outcome = step(made)
    assert outcome.failure == "stage: lost lifted"


def test_what_was_seen_of_a_stage_before_a_failure_counts_no_more():
    begun = []
    names = ("lifted", "aligned")
    stages = [
        JudgedStage(name, judged_by_task(name), lasting=name == "lifted", begin=lambda name=name: begun.append(name))
        for name in names
    ]
    made = StageJudge(stages, steps=0, retries=1)
    made.begin()
    step(made, "lifted")
    step(made, "aligned", "lifted")
    begun.clear()
    for _ in range(LOST):
        step(made)
    assert (made.stage, begun) == ("lifted", ["lifted", "aligned"])


def test_a_lasting_stage_may_have_a_condition_of_its_own():
    raw = JudgedStage("lifted", judged_by_task("lifted"), lasting=True, lasts=judged_by_task("aligned"))
    made = StageJudge([raw], steps=0, retries=0)
    made.begin()
    step(made, "lifted")
    assert all(step(made, "aligned").failure is None for _ in range(2 * LOST))
    assert [step(made, "lifted").failure for _ in range(LOST)][-1] == "stage: lost lifted"


def test_what_need_not_last_may_go():
    made = judge()
    step(made, "lifted")
    for _ in range(3 * LOST):
        step(made)
    assert made.stage == "aligned"


def test_a_persons_word_means_the_stage_that_waits_for_it():
    made = judge(person=("aligned",))
    step(made, "lifted")
    said = step(made, success=True, reward=1.0, judge=OPERATOR_JUDGE, overruled="task")
    assert (said.success, said.reward, said.overruled, made.stage) == (False, 0.0, None, "success")
    assert step(made, success=True, reward=1.0, judge=OPERATOR_JUDGE).success
    made.begin()
    assert step(made, success=True, reward=1.0, judge=OPERATOR_JUDGE).success, "lifted waits for nobody: all is done"
    made.begin()
    step(made, "lifted")
    assert step(made, success=True, reward=1.0, judge=OPERATOR_JUDGE).success, (
        "others saw it too: a yes to their question"
    )


def test_a_failure_of_the_task_stays_and_held_steps_do_not_count():
    made = judge(steps=2, retries=0)
    assert step(made, failure="it fell").failure == "it fell"
    made.begin()
    assert all(step(made, held=True).failure is None for _ in range(5))
    assert step(made).failure is None
    assert step(made).failure == "stage: lifted took too long"


class Says:
    """A judge after whom nobody but stages may come."""

    def begin(self):
        pass

    def judge(self, outcome, observation, spec):
        return Outcome(False, 0.0, metrics=stage_metrics(lifted=True))


def test_an_environment_observes_the_stages_of_the_step_that_was_judged():
    made = judge()
    env = RobotEnv(replace(fake_workcell(), judges=(made, Says())))
    assert env.judges[-1] is made, "the last one, wherever it stands"
    assert env.observation_specs[f"{STAGE_PREFIX}aligned"].shape == (1,)
    env.start(0, "one")
    assert flags(env.observation) == [0, 0]
    info = env.advance(np.zeros(env.environment_spec.action_size, np.float32))
    assert flags(info.observation) == [1, 0]
    assert flags(info.recorded.observation) == [0, 0]
    env.close()


@pytest.mark.parametrize("name", ["lifted", "aligned"])
def test_a_task_says_nothing_of_stages_that_it_does_not_know(name):
    assert not judged_by_task(name)(Outcome(False, 0.0), {}, SPEC)
