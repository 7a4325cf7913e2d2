"""Training with shaped rewards: the learner gets potentials, records keep the true rewards, the run keeps its head."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from fakes import FakeRobot, FakeTask, fake_workcell
from running import learned, one_thread, same

from robot_rl.config.components import EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.reward import RewardConfig, ShapingConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, InterruptedRunError, RunDirectoryError, UncertifiedError, UnknownNameError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import ProgressHead, ProgressNet
from robot_rl.reward.potential.progress_potential import ProgressPotential
from robot_rl.run.deployment import Deployment
from robot_rl.run.train import train
from robot_rl.run.training_loop import Training

SPEC = replace(fake_workcell().task.spec, cameras=("front",))
SIZE = 32
CONFIG = TrainConfig(
    task="reach",
    demonstrations=1,
    env_steps=40,
    warmup_steps=10,
    update_to_data=1,
    checkpoint_interval=20,
    sac=SACConfig(hidden_sizes=(8, 8)),
    replay=ReplayConfig(batch_size=8),
    evaluation=EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0),
)


class SeenRobot(FakeRobot):
    """Its camera shows how near the point is to the goal."""

    def __init__(self):
        super().__init__()
        self.task = FakeTask(self, SPEC)

    def read(self):
        near = 1.0 - np.linalg.norm(self.position() - self.task.goal) / 0.05
        return replace(super().read(), images={"front": np.full((SIZE, SIZE, 3), 255 * np.clip(near, 0, 1), np.uint8)})


def seen_workcell(task, options):
    del task
    assert options.cameras in ((), ("front",))
    robot, cell = SeenRobot(), fake_workcell()
    return replace(cell, io=robot, clock=robot.clock, task=robot.task, operator=replace(cell.operator, task=robot.task))


SITE = Deployment(seen_workcell, can_film=False)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


def make_head(seed=0, task=SPEC.instruction, camera="front"):
    size = FrameFeatures("bundled", SIZE)(np.zeros((1, SIZE, SIZE, 3), np.uint8)).shape[1]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        basis, net = torch.randn(size, 3) / size**0.5, ProgressNet(3).eval()
        torch.nn.init.normal_(net.last.weight)
    return ProgressHead("bundled", SIZE, camera, task, (), torch.zeros(size), basis, net)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    file = tmp_path_factory.mktemp("head") / "head.pt"
    make_head().write(file)
    return file


def shaped(head, **changes):
    return replace(
        CONFIG, reward=RewardConfig(shaping=ShapingConfig(head=str(head), scale=0.5), allow_unfit=True), **changes
    )


@pytest.fixture(scope="module")
def whole(head, tmp_path_factory):
    """A run that nothing happened to."""
    path = tmp_path_factory.mktemp("whole") / "run"
    with one_thread():
        train(shaped(head), path, resume=False, deployment=SITE)
    return path


@pytest.mark.slow
def test_replay_has_the_potential_of_every_observation_and_the_store_the_true_rewards(whole, head):
    kept = json.loads((whole / "provenance.json").read_text())["progress_head"]
    assert kept["path"] == str(head)
    assert (whole / "progress_head.pt").read_bytes() == head.read_bytes()
    verdict = json.loads((whole / "summary.json").read_text())["shaping"]
    assert (verdict["certified"], verdict["fitness"]) == (False, "not shown")
    learner = load_checkpoint(whole / "checkpoint.pt")["learner"]
    with EpisodeStore.open(whole / "episodes") as store:
        episodes = list(store.episodes())
    expected, potential = [], ProgressPotential(make_head(), 0.5)
    for episode in episodes:
        so_far = potential.begin()
        expected.append([so_far(potential.encode(frame)) for frame in episode.observations["images/front"]])
        assert set(episode.reward.tolist()) <= {0.0, 1.0}
    for memory, ours in ((learner["demos"], expected[:1]), (learner["online"], expected[1:])):
        np.testing.assert_allclose(memory["potential"], np.concatenate(ours), atol=1e-6)
    assert np.ptp(np.concatenate(expected)) > 0.01
    rewards = np.concatenate([np.append(episode.reward, 0.0) for episode in episodes[1:]])
    np.testing.assert_array_equal(learner["online"]["reward"], rewards)


def test_it_learns_something_else_than_without(whole, tmp_path):
    train(CONFIG, tmp_path / "plain", resume=False, deployment=SITE)
    assert not same(learned(whole), learned(tmp_path / "plain"))


@pytest.mark.slow
def test_stopped_and_resumed_it_goes_on_with_its_own_copy(whole, head, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    mine = tmp_path / "mine.pt"
    mine.write_bytes(head.read_bytes())
    config = shaped(mine)
    saves = Training.save

    def stops(self):
        saves(self)
        self.stop_requested = self.env_steps > 0

    with monkeypatch.context() as patched, pytest.raises(InterruptedRunError):
        patched.setattr(Training, "save", stops)
        train(config, tmp_path / "run", resume=False, deployment=SITE)
    make_head(seed=1).write(mine)  # trained again meanwhile
    train(config, tmp_path / "run", resume=True, deployment=SITE)
    assert "was changed since; the run goes on with its own copy" in caplog.text
    assert same(learned(tmp_path / "run"), learned(whole))


def test_a_head_without_a_report_is_refused_before_there_is_a_run_unless_the_user_takes_the_risk(head, tmp_path):
    config = shaped(head)
    refused = replace(config, reward=replace(config.reward, allow_unfit=False))
    with pytest.raises(UncertifiedError, match=r"NOT SHOWN to be fit for dense shaping.*reward\.allow_unfit=true"):
        train(refused, tmp_path / "run", resume=False, deployment=SITE)
    assert not (tmp_path / "run").exists()


def test_a_head_for_another_task_or_camera_or_run_is_refused(whole, head, tmp_path):
    for changes, error, told in (
        ({"task": "open the drawer"}, ConfigError, r"trained for 'open the drawer', the task fake_reach is 'move the"),
        ({"camera": "wrist"}, UnknownNameError, "unknown camera 'wrist'; valid: front"),
    ):
        make_head(**changes).write(tmp_path / "other.pt")
        with pytest.raises(error, match=told):
            train(shaped(tmp_path / "other.pt"), tmp_path / "run", resume=False, deployment=ANY)
        assert not (tmp_path / "run").exists()
    make_head(seed=2).write(tmp_path / "other.pt")
    with pytest.raises(ConfigError, match=r"started with the progress head .*resume it without reward\.shaping\.head"):
        train(shaped(tmp_path / "other.pt"), whole, resume=True, deployment=SITE)
    (whole / "progress_head.pt").rename(tmp_path / "away.pt")
    with pytest.raises(RunDirectoryError, match="the progress head that the run was started with, is gone"):
        train(shaped(head), whole, resume=True, deployment=SITE)


def any_workcell(task, options):
    return seen_workcell(task, replace(options, cameras=()))


ANY = Deployment(any_workcell, can_film=False)
