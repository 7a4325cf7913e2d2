"""What does not go with a practice over topics is refused in one line, before anything is written."""

import pytest

from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.errors import ConfigError
from robot_rl.practice.files import PracticeFiles, PracticePlan
from robot_rl.run.deployment import Deployment
from ros_nodes.bringup.plan import plan
from ros_nodes.jobs.actor_jobs import ActorJobs
from ros_nodes.jobs.site import Site

PAIR = ("relocate_forward", "relocate_back")


def refused(turns=PAIR, **given):
    config = ActorNodeConfig(**{"job": "practice", "learner": "inside", **given})
    jobs = ActorJobs(config, lambda: Site(Deployment(), lockstep=True, turns=turns), print)
    with pytest.raises(ConfigError) as refusal:
        jobs.run()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("turns", "given", "complaint"),
    [
        (PAIR, {"out": ""}, "job:=practice needs out:=DIRECTORY"),
        (PAIR, {"fleet": "fleet.yaml"}, "a fleet learns one task; leave fleet out"),
        (PAIR, {"learner": "node"}, "a learner process of the actor's own for each task; set learner:=inside"),
        (PAIR, {"settings": ("task=reach",)}, "task reach, but those that take turns here are relocate_forward and"),
        ((), {}, "no tasks take turns here: start sim_node with practice:=true"),
    ],
)
def test_it_names_what_is_wrong_and_the_cure(tmp_path, turns, given, complaint):
    assert complaint in refused(turns, **{"out": str(tmp_path / "practice"), **given})
    assert not list(tmp_path.iterdir())


def test_a_practice_of_other_tasks_is_not_continued(tmp_path):
    PracticeFiles.create(tmp_path, PracticePlan(("cube_lift",)), {})
    (tmp_path / "cube_lift").mkdir()
    (tmp_path / "cube_lift" / "provenance.json").write_text("{}")
    assert "practises cube_lift, here are relocate_forward and relocate_back; set task" in refused(out=str(tmp_path))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"task": "reach"}, "--task reach: it names no reverse, so it cannot be practised over topics"),
        ({}, "--task peg_insert: it names no reverse"),
        (
            {"task": "relocate_forward", "console": ":8480"},
            "--console: over topics nobody takes part in a practice yet",
        ),
        ({"task": "relocate_forward", "fleet": "fleet.yaml"}, "--fleet: a fleet learns one task, a practice two"),
    ],
)
def test_no_node_is_started_for_what_cannot_be_practised(tmp_path, given, complaint):
    with pytest.raises(ConfigError) as refusal:
        plan("practice", given, tmp_path, flag="--")
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_simulation_and_its_guard_let_the_steps_of_both_tasks_through(tmp_path):
    specs = {spec.name: spec for spec in plan("practice", {"task": "relocate_forward"}, tmp_path)}
    training = {spec.name: spec for spec in plan("train", {"task": "relocate_forward"}, tmp_path)}
    assert specs["practice_sim"].parameters == {**training["sim"].parameters, "practice": True}
    assert specs["safety"] == training["safety"]
