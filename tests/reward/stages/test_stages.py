"""Trainings and demonstrations in stages, as they are configured: who judges, what is learned from, what is refused."""

import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from fakes import fake_workcell
from running import SMALL, one_thread, robot_rl

from robot_rl.cell.task_file import task_content, task_from
from robot_rl.config.components import SACConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.load import load_config
from robot_rl.config.reward import RewardConfig, StagesConfig
from robot_rl.data.schema import STAGE_PREFIX
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import ConfigError, RunDirectoryError, UnknownNameError
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import make_perception
from robot_rl.reward.classifier.classifier import RewardClassifier
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.reward.stages.stage_judge import StageJudge
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.lineage.run_chain import trace
from robot_rl.run.make_reward import RewardSetup

SPEC = fake_workcell().task.spec
LIFTED = ("--set", "reward.stages.order=[lifted=task]")


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


def staged(*order, **settings):
    return RewardConfig(stages=StagesConfig(order=order, **settings))


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (["lifted"], "stage lifted has no judge; valid: lifted=task, lifted=person, lifted=classifier:FILE"),
        (["lifted=labels"], "stage lifted: 'labels' is no judge; valid: task, person, classifier:FILE"),
        (["lifted=classifier"], "'classifier' is no judge"),
        (["Lifted up=task"], "the name of a stage is a word"),
        (["success=task"], "the name of a stage is a word of a-z, 0-9 and _, and not success"),
        (["lifted=task", "lifted=person"], "two stages have the same name: lifted, lifted"),
    ],
)
def test_stages_that_cannot_be_are_refused_where_they_are_read(order, said):
    with pytest.raises(ValueError, match="stage") as refused:
        StagesConfig(order=tuple(order))
    assert said in str(refused.value)
    with pytest.raises(ConfigError, match=r"^reward\.stages\.order \(command line\): ") as named:
        load_config(None, [f"reward.stages.order={order}"])
    assert said in str(named.value)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (TrainConfig(task="gym:Pendulum-v1", reward=staged("up=task")), "stages are judged on our own environments"),
        (
            TrainConfig(reward=replace(staged("up=task"), kind="labels")),
            "reward.stages.order with reward.kind=labels: the next stage cannot wait for labels",
        ),
    ],
)
def test_settings_that_go_not_together_are_refused(config, said):
    with pytest.raises(ConfigError, match=said):
        check_consistent(config)


def test_a_task_judges_only_the_stages_that_it_knows():
    make = partial(fake_workcell, replace(SPEC, stages=("lifted",)))
    cell = RewardSetup(staged("lifted=task", lasting=("lifted",))).workcell(make)
    assert isinstance(cell.judges[-1], StageJudge)
    with pytest.raises(UnknownNameError, match=r"unknown stage of .* 'lfted'; valid: lifted; did you mean 'lifted'\?"):
        RewardSetup(staged("lfted=task")).workcell(make)


def test_what_contradicts_itself_is_refused_before_anything_is_opened():
    for reward, error, said in (
        (staged("lifted=task", lasting=("held",)), UnknownNameError, "unknown lasting stage 'held'; valid: lifted"),
        (staged("placed=person", lasting=("placed",)), ConfigError, "a person judges it once"),
        (staged(lasting=("held",)), ConfigError, r"reward\.stages\.lasting without reward\.stages\.order"),
        (staged(steps=5), ConfigError, r"reward\.stages\.steps without reward\.stages\.order"),
    ):
        with pytest.raises(error, match=said):
            RewardSetup.from_config(reward)
        with pytest.raises(error, match=said):
            check_consistent(TrainConfig(reward=reward))


def test_what_is_allowed_for_a_training_is_allowed_for_its_demonstrations():
    setup = RewardSetup(replace(staged("lifted=task"), allow_unfit=True))
    assert setup.staged.config.allow_unfit and setup.staged.config.stages == setup.config.stages


def test_a_file_declares_no_stages_that_nobody_judges():
    with pytest.raises(ConfigError, match="unknown stages; valid:"):
        task_from({"action_axes": ["x"], "stages": ["lifted"]}, "mine", "task.yaml")
    assert "stages" not in task_content(replace(SPEC, stages=("lifted",)))


def test_a_workcell_tells_which_stages_a_person_judges():
    cell = RewardSetup(staged("near=person", "lifted=task")).workcell(
        partial(fake_workcell, replace(SPEC, stages=("lifted",)))
    )
    assert cell.person_stages == ("near",)


def test_a_stage_that_a_person_judges_needs_one():
    config = TrainConfig(task="reach", reward=staged("near=person"))
    opened = Deployment().environment("reach", workcell_options(config), RewardSetup(config.reward))
    with pytest.raises(ConfigError, match="a person judges the stage near, and nobody is here"):
        opened.__enter__()
    with Deployment().environment("reach", workcell_options(config), RewardSetup(config.reward), played=False) as env:
        assert f"{STAGE_PREFIX}near" in env.observation_specs, "to look at, nobody is needed"


def test_the_potential_grows_with_the_stages():
    cell = RewardSetup(staged("lifted=task", "aligned=task")).workcell(
        partial(fake_workcell, replace(SPEC, stages=("lifted", "aligned")))
    )
    env = RobotEnv(cell)
    for shaping, expected in ((0.6, [0.0, 0.3, 0.6]), (0.0, [0.0, 0.0, 0.0])):
        config = TrainConfig(reward=staged("lifted=task", "aligned=task", shaping=shaping))
        perception = make_perception(env.observation_specs, config)
        assert perception.spec.potential == shaping
        start = env.start(0, "one").observation
        flags = ([0.0, 0.0], [1.0, 0.0], [1.0, 1.0])
        keys = [f"{STAGE_PREFIX}{name}" for name in ("lifted", "aligned")]
        rows = [{**start, **{k: np.array([v], np.float32) for k, v in zip(keys, flag, strict=True)}} for flag in flags]
        assert [perception.first(row).potential for row in rows] == pytest.approx(expected)
        columns = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
        assert [one.potential for one in perception.of_rows(columns)] == pytest.approx(expected)
    assert make_perception(fake_workcell_specs(), TrainConfig(reward=staged("lifted=task"))).spec.potential == 0.0
    env.close()


def fake_workcell_specs():
    return RobotEnv(fake_workcell()).observation_specs


def test_a_run_pins_the_classifiers_of_its_stages(tmp_path):
    head = SuccessHead("bundled", 32, "front", SPEC.name, (), *(torch.zeros(1) for _ in range(4)))
    file = tmp_path / "aligned.pt"
    RewardClassifier(SPEC.name, {"front": head}, (1.0,), 0.0, 0.5, 3).write(file)
    config = replace(staged(f"aligned=classifier:{file}"), allow_unfit=True)
    setup = RewardSetup.from_config(config)
    options = workcell_options(TrainConfig(task="reach"))
    assert setup.observe(options).cameras == ("front",)
    with pytest.raises(UnknownNameError, match="unknown camera 'front'"):
        setup.workcell(partial(fake_workcell, replace(SPEC, cameras=("wrist",))))
    cell = setup.workcell(partial(fake_workcell, replace(SPEC, cameras=("front",))))
    cell.close()
    run = RunDirectory.create(tmp_path / "run", TrainConfig(reward=config), {})
    setup.pin(run)
    (pinned,) = [link for link in trace(tmp_path / "run").sources if link.kind == "file"]
    assert pinned.name == "stage_aligned.pt" and not pinned.breaks
    shutil.move(file, tmp_path / "elsewhere.pt")
    again = RewardSetup.of_run(run.path, config)
    assert again.stages["aligned"].sha256 == setup.stages["aligned"].sha256
    (run.path / "stage_aligned.pt").unlink()
    with pytest.raises(RunDirectoryError, match="the classifier of the stage aligned that the run was started with"):
        RewardSetup.of_run(run.path, config)


def test_what_critics_expect_does_not_fall_because_a_stage_is_reached():
    """They learn Q' = Q - Phi; whoever is called by what they expect is to see Q."""
    config = TrainConfig(
        task="fake", reward=staged("lifted=task", shaping=0.5), sac=SACConfig(hidden_sizes=(8,)), warmup_steps=1
    )
    env = RobotEnv(RewardSetup(config.reward).workcell(partial(fake_workcell, replace(SPEC, stages=("lifted",)))))
    learner = LocalLearner(env.environment_spec, make_perception(env.observation_specs, config), config)
    start = env.start(0, "one").observation
    values = []
    for flag in (0.0, 1.0):
        learner.on_start(f"episode-{flag}", {**start, f"{STAGE_PREFIX}lifted": np.array([flag], np.float32)})
        learner.updates = 1
        with torch.no_grad():  # critics that expect nothing of anything
            for parameter in learner.algorithm.critic.parameters():
                parameter.zero_()
        values.append(learner.value)
    env.close()
    assert values == pytest.approx([0.0, 0.5])


@pytest.mark.parametrize(
    ("task", "stages"),
    [("usb_pick_insert", ["lifted"]), ("relocate_forward", ["lifted"]), ("handover", ["lifted", "taken"])],
)
def test_the_scripted_operator_goes_through_the_stages_of_a_task(task, stages):
    config = staged(*(f"{name}=task" for name in stages))
    env = RobotEnv(RewardSetup(config).workcell(lambda: make_workcell(task)))
    assert set(stages) <= set(env.spec_task.stages)
    env.start(200, "one", demonstrate=True)
    seen, info = [], None
    while info is None or not info.ended:
        info = env.advance(np.zeros(env.environment_spec.action_size, np.float32))
        seen.append(tuple(float(info.observation[f"{STAGE_PREFIX}{name}"][0]) for name in stages))
    env.close()
    assert info.success
    steps = [step for step, before in zip(seen, [None, *seen], strict=False) if step != before]
    assert steps == [tuple(float(n < done) for n in range(len(stages))) for done in range(len(stages) + 1)]


def test_a_training_in_stages_from_recorded_demonstrations_to_its_evaluation(tmp_path):
    demos, run = tmp_path / "demos", tmp_path / "run"
    assert robot_rl("demo", "relocate_forward", "--episodes", "1", "--out", demos, *LIFTED).returncode == 0
    with EpisodeStore.open(demos) as store:
        recorded = store.read(store.ids()[0])
    lifted = recorded.observations[f"{STAGE_PREFIX}lifted"][:, 0]
    assert set(lifted) == {0.0, 1.0}
    assert (np.diff(lifted) >= 0).all()
    assert recorded.reward.sum() == 1.0, "what is recorded stays the reward of the success"
    stages = (*LIFTED, "--set", "reward.stages.steps=30", "--set", "reward.stages.retries=0")
    small = (*SMALL, "--steps", "60", "--episodes", "2", "--set", "demonstrations=1")
    film = ("--set", "evaluation.curve_interval=0", "--set", "evaluation.video_episodes=1")
    done = robot_rl("train", "relocate_forward", "--demos", demos, "--out", run, *stages, *small, *film)
    assert done.returncode == 0, done.stderr
    assert "stages reached: lifted 0.000" in done.stdout
    assert "2 x stage: lifted took too long" in done.stdout
    summary = json.loads((run / "summary.json").read_text())
    assert (run / "evaluation.mp4").is_file()
    assert summary["stages"] == {"lifted": 0.0}
    again = robot_rl("eval", run, "--episodes", "1", "--json")
    assert json.loads(again.stdout)["failures"] == {"stage: lifted took too long": 1}
    without = tmp_path / "without"
    assert robot_rl("demo", "relocate_forward", "--episodes", "1", "--out", without).returncode == 0
    refused = robot_rl("train", "relocate_forward", "--demos", without, "--out", tmp_path / "other", *LIFTED, *SMALL)
    assert refused.returncode == 1
    assert f"{STAGE_PREFIX}lifted" in refused.stderr.strip().splitlines()[-1]
