"""A new run that begins with the networks, the replay or the demonstrations of another one."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from running import learned, robot_rl, same, snapshot, start, wait_for

from robot_rl.config.components import AlgorithmConfig, BaseConfig, EncoderConfig, ReplayConfig, SACConfig
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.config.reward import RewardConfig, StagesConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import CheckpointError, RobotRLError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import Perception
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.lineage.initial_parts import InitialParts, parts_of
from robot_rl.run.lineage.source_run import SourceRun
from robot_rl.run.train import train


@pytest.fixture
def env():
    made = RobotEnv(make_workcell("reach"))
    yield made
    made.close()


def take(old, *parts):
    return InitialParts.of(SourceRun.read(old), parts)


def given(initial, env, config):
    """The state of a new learner before and after it is given the parts."""
    learner = LocalLearner(env.environment_spec, Perception(env.observation_specs), config)
    before = learner.state_dict()
    initial.give(learner, env, config)
    return before, learner.state_dict()


def changed(before, after):
    """The modules whose parameters are others."""
    modules = before["algorithm"]["modules"]
    return {
        name
        for name, module in modules.items()
        if any(not torch.equal(value, after["algorithm"]["modules"][name][key]) for key, value in module.items())
    }


def test_each_part_by_itself(old, env, config):
    source = SourceRun.read(old).state["learner"]
    before, after = given(take(old, "policy"), env, config)
    assert changed(before, after) == {"policy"}
    assert after["algorithm"]["log_temperature"] == source["algorithm"]["log_temperature"]
    assert len(after["online"]["state"]) == 0

    before, after = given(take(old, "critics"), env, config)
    assert changed(before, after) == {"critic", "critic_target"}

    before, after = given(take(old, "replay"), env, config)
    assert changed(before, after) == set()
    for column in ("state", "action", "reward", "terminated"):
        assert np.array_equal(after["online"][column], source["online"][column])
    assert not {*after["online"]["episode_names"]} & {*source["online"]["episode_names"]}, "labels reach their own run"
    assert (after["env_steps"], after["updates"], len(after["demos"]["state"])) == (0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "parts", "expected"),
    [
        ({"sac": SACConfig(hidden_sizes=(8,))}, "policy", r"sac\.hidden_sizes is \[16, 16\] there and \[8\] here"),
        ({"sac": SACConfig(hidden_sizes=(16, 16), ensemble_size=3)}, "critics", r"sac\.ensemble_size is 2 there and 3"),
        ({"replay": ReplayConfig(history=(0,))}, "policy", r"replay\.history is \[0, 1\] there and \[0\] here"),
        ({"replay": ReplayConfig(history=(0, 4))}, "policy", r"replay\.history is \[0, 1\] there and \[0, 4\] here"),
        ({"base": BaseConfig(kind="clone")}, "policy", r"base\.kind is 'none' there and 'clone' here"),
        (
            {"observations": "pixels", "encoder": EncoderConfig(name="random")},
            "policy",
            r"encoder\.name is 'bundled' there and 'random' here; set it alike",
        ),
        (
            {"observations": "pixels", "encoder": EncoderConfig(cameras=("wrist", "front"))},
            "critics",
            r"encoder\.cameras is \[\] there and \['wrist', 'front'\] here",
        ),
        ({"replay": ReplayConfig(capacity=50)}, "replay", r"its replay has \d+ rows; set replay\.capacity"),
        ({"task": "other"}, "replay", "task is 'reach' there and 'other' here.*leave replay out"),
        ({"environment": EnvironmentConfig(action_repeat=2)}, "replay", r"environment\.action_repeat is 1 there and 2"),
        (
            {"reward": RewardConfig(stages=StagesConfig(("near=task",), shaping=0.1))},
            "replay",
            r"reward\.stages is \{.*\} there and \{.*near=task.*\} here.*leave replay out",
        ),
        (
            {"environment": EnvironmentConfig(reward="success")},
            "demonstrations",
            r"its demonstrations cannot.*reward is",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(changes, parts, expected, old, env, config):
    with pytest.raises(CheckpointError, match=expected) as caught:
        given(take(old, parts), env, replace(config, **changes))
    assert "\n" not in str(caught.value)
    assert str(old) in str(caught.value)


def test_other_observations_are_refused_also_of_the_same_size(old, env, config):
    initial = take(old, "policy")
    renamed = {("state/elsewhere" if key == "state/target" else key): shape for key, shape in initial.layout.items()}
    with pytest.raises(CheckpointError, match=r"only there state/elsewhere \(3,\); only here state/target \(3,\)"):
        given(replace(initial, layout=renamed), env, config)


@pytest.mark.parametrize("part", ["policy", "critics", "replay"])
def test_actions_that_moved_something_else_are_refused(part, old, tmp_path, env, config):
    source = shutil.copytree(old, tmp_path / "source")
    file = source / "provenance.json"
    file.write_text(file.read_text().replace("every 0.1 s", "every 0.05 s"))
    with pytest.raises(
        CheckpointError, match=r"an action of it is .* every 0\.05 s, and one of reach is .* every 0\.1"
    ):
        given(take(source, part), env, config)


def test_an_algorithm_without_critics(old, tmp_path, env, config):
    cloned = tmp_path / "cloned"
    settings = replace(config, env_steps=0, algorithm=AlgorithmConfig("bc"))
    train(replace(settings, offline=replace(config.offline, steps=3)), cloned, resume=False)
    with pytest.raises(CheckpointError, match="its algorithm bc has no critics"):
        take(cloned, "policy", "critics")
    before, after = given(take(cloned, "policy"), env, config)
    assert changed(before, after) == {"policy"}


def test_the_new_run_knows_its_origin_and_needs_it_no_more(old, tmp_path, config):
    source = shutil.copytree(old, tmp_path / "source")
    untouched = snapshot(source)
    run, whole = tmp_path / "run", tmp_path / "whole"
    new = replace(config, env_steps=60)
    for path in (run, whole):
        initial = take(source, "policy", "critics", "replay", "demonstrations")
        train(new, path, resume=False, initial=initial)
    assert snapshot(source) == untouched
    origin = RunDirectory.read_facts(run)["origin"]
    assert (origin["run"], origin["env_steps"], origin["seed"]) == (str(source), 90, 5)
    assert origin["parts"] == ["policy", "critics", "replay", "demonstrations"]
    with EpisodeStore.open(run / "episodes") as store, EpisodeStore.open(source / "episodes") as theirs:
        rows = [row for row in store.summaries() if row.facts.demonstration]
        assert len(rows) == 2
        assert np.array_equal(store.read(rows[0].episode_id).action, theirs.read(theirs.ids()[0]).action)
    replayed = load_checkpoint(run / "checkpoint.pt")["learner"]["online"]
    assert sum(name.startswith("initial ") for name in replayed["episode_names"].tolist()) >= 2

    shutil.rmtree(source)
    # Killed before its first checkpoint: the same run comes of it.
    for name in ("checkpoint.pt", "checkpoint.pt.previous", "summary.json"):
        (run / name).unlink(missing_ok=True)
    train(new, run, resume=True)
    assert same(learned(run), learned(whole))

    (run / "initial.pt").unlink()
    (run / "checkpoint.pt").unlink()
    with pytest.raises(CheckpointError, match=r"initial\.pt: no checkpoint there"):
        train(new, run, resume=True)


def test_a_policy_that_is_taken_acts_from_the_first_step(old, tmp_path, config):
    run = tmp_path / "run"
    train(replace(config, env_steps=15, demonstrations=0), run, resume=False, initial=take(old, "policy"))
    theirs = load_checkpoint(old / "checkpoint.pt")["learner"]["algorithm"]["modules"]["policy"]
    mine = load_checkpoint(run / "checkpoint.pt")
    assert same(mine["learner"]["algorithm"]["modules"]["policy"], theirs), "15 steps are within the warm-up"
    assert same(mine["deployed"]["policy"], theirs)


def test_the_checkpoint_can_be_chosen(old):
    newest = SourceRun.read(old)
    earlier = load_checkpoint(old / "checkpoint.pt.previous")["env_steps"]
    assert (newest.env_steps, SourceRun.read(old, earlier).env_steps) == (90, earlier)
    with pytest.raises(CheckpointError, match=rf"no checkpoint after 7 env steps; there are: {earlier}, 90"):
        SourceRun.read(old, 7)


def test_checkpoints_that_stay(tmp_path, config):
    run = tmp_path / "run"
    config = replace(config, demonstrations=0, env_steps=160, keep_checkpoints=80, warmup_steps=200)
    train(config, run, resume=False)
    (early, late) = sorted(int(file.stem) for file in (run / "checkpoints").iterdir())
    assert 80 <= early < 160 == late
    assert SourceRun.read(run, early).env_steps == early
    kept = run / "checkpoints" / f"{late:09d}.pt"
    kept.unlink()  # as if it was killed before it had the second name
    train(config, run, resume=True)
    assert kept.samefile(run / "checkpoint.pt")


def test_names_of_parts():
    assert parts_of(" critics, policy,critics") == ("critics", "policy")
    for wrong in ("", "policy,actor"):
        with pytest.raises(ValueError, match="valid: policy, critics, replay, demonstrations"):
            parts_of(wrong)


def test_what_a_kill_left_of_a_new_run_is_removed_and_nothing_else(tmp_path, config):
    path = tmp_path / "run"

    def fail(folder):
        (folder / "half").write_text("a")
        raise KeyboardInterrupt

    left = tmp_path / "left"
    with pytest.raises(KeyboardInterrupt):
        RunDirectory.create(path, config, prepare=lambda folder: (shutil.copytree(folder, left), fail(folder)))
    assert not path.exists(), "an error leaves nothing"
    with RunDirectory.create(left, config):
        assert not (left / "half").exists()
    with pytest.raises(RobotRLError, match="already holds a run"):
        RunDirectory.check_free(left)


@pytest.mark.slow
def test_by_the_command_line_and_killed_before_it_is_a_run(old, tmp_path):
    small = (
        "--steps",
        15,
        "--episodes",
        1,
        "--set",
        "sac.hidden_sizes=[16, 16]",
        "--set",
        "evaluation.video_episodes=0",
    )
    run = tmp_path / "run"
    command = ("train", "reach", *small, "--init-from", old, "--init", "policy,critics,replay,demonstrations")
    process = start(*command, "--out", run)
    wait_for((run / "initial.pt").exists, process)
    process.kill()
    process.communicate()
    again = ("train", "--resume") if (run / "provenance.json").exists() else command
    done = robot_rl(*again, "--out", run)
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "provenance.json").read_text())["origin"]["how"] == "init"
    with EpisodeStore.open(run / "episodes") as store:
        assert sum(row.facts.demonstration for row in store.summaries()) == 2


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--init", "policy"), "--init needs --init-from RUN"),
        (("--at", "3"), "--at needs --init-from RUN"),
        (("--init-from", "OLD", "--init", "brain"), "unknown part 'brain'; valid: policy, critics"),
        (("--init-from", "OLD", "--resume", "--out", "x"), "leave out --init-from"),
        (("--init-from", "nowhere"), "nowhere holds no run"),
    ],
)
def test_wrong_flags_are_one_line(flags, expected, old, tmp_path):
    done = robot_rl("train", "reach", *(str(old) if flag == "OLD" else flag for flag in flags), cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_demonstrations_of_a_run_that_has_none_are_refused(tmp_path, config):
    others = EnvironmentConfig(max_steps=10)
    alone = replace(config, task="gym:Pendulum-v1", environment=others, demonstrations=0, env_steps=20)
    train(alone, tmp_path / "alone", resume=False)
    done = robot_rl(
        "train", alone.task, "--init-from", "alone", "--init", "demonstrations", "--out", "new", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "robot-rl: alone has no demonstrations; leave them out of --init" in done.stderr
    assert not (tmp_path / "new").exists()
