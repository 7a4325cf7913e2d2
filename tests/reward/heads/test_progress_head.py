"""A progress head on the frozen encoder that is bundled, on pictures whose progress is known."""

import dataclasses
import json

import numpy as np
import pytest
import tagged
import torch
from pushing import scene
from running import robot_rl
from scipy.stats import spearmanr

from robot_rl.config.labelling import BudgetConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError
from robot_rl.reward.budget import Budget
from robot_rl.reward.heads.progress_head import FAILURE_AT_MOST, ProgressNet, train_progress_net
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.make_backend import make_backend

STEPS = 11


def frames_at(distances, seed):
    rng = np.random.default_rng(seed)
    return np.stack([scene(rng, distance) for distance in distances])


def pushed_store(path, waits=0):
    """The square arrives in two of three episodes, and some steps before their end."""
    with EpisodeStore.create(path, {"task": "push"}) as store:
        for number in range(36):
            made, success = tagged.valid(number, STEPS), number % 3 > 0
            distances = np.linspace(1.0, 0.0 if success else 0.6, STEPS + 1 - waits)
            distances = np.concatenate([distances, np.full(waits, distances[-1])])
            states = {key: column for key, column in made.observations.items() if not key.startswith("images/")}
            pose = np.pad(0.1 * distances[:, None], ((0, 0), (0, 5))).astype(np.float32)
            seen = {**states, "state/tcp_pose": pose, "images/front": frames_at(distances, number)}
            store.append(dataclasses.replace(made, observations=seen, metadata={"task": "push", "success": success}))
    return path


def trained(path):
    """A head that the command trains on half of a store."""
    file = path.parent / "progress.pt"
    settings = ("--kind", "progress", "--size", 64, "--frames", STEPS + 1, "--task", "push")
    done = robot_rl("label", "train", path, "--out", file, *settings)
    assert done.returncode == 0, done.stderr
    assert "robot-rl label run STORE --kind progress" in done.stdout
    return file


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A store, and a head trained on half of it."""
    path = pushed_store(tmp_path_factory.mktemp("pushed") / "s")
    return path, trained(path)


def asked(file, distances, seed):
    backend = make_backend(LabelConfig(backend="head", kind="progress", head=str(file)), Budget(BudgetConfig()))
    frames = frames_at(distances, seed)
    query = Query(QueryKind.PROGRESS, "push", (Clip("e", "f", "front", tuple(range(len(frames))), frames),))
    return np.array(backend.answer(query).values)


@pytest.mark.slow
def test_it_follows_what_is_done_and_what_is_undone_again(pushed):
    _, file = pushed
    back_and_forth = np.concatenate([np.linspace(1, 0.1, 6), np.linspace(0.2, 0.9, 5), np.linspace(0.8, 0, 6)])
    progress = asked(file, back_and_forth, 1000)
    assert progress.min() >= 0.0
    assert progress.max() <= 1.0
    assert spearmanr(progress, -back_and_forth).statistic > 0.8
    assert spearmanr(progress, np.arange(len(progress))).statistic < 0.6, "it counts the frames"


def test_a_failure_ends_below_a_success(pushed):
    _, file = pushed
    reached, stopped = asked(file, np.linspace(1, 0, 12), 1001), asked(file, np.linspace(1, 0.6, 12), 1002)
    assert reached[-1] > stopped[-1] + 0.3
    assert stopped[-1] < FAILURE_AT_MOST + 0.1


@pytest.mark.slow
def test_to_wait_where_it_arrived_is_no_progress(tmp_path):
    file = trained(pushed_store(tmp_path / "s", waits=STEPS - 4))
    progress = asked(file, np.concatenate([np.linspace(1, 0, 5), np.zeros(STEPS - 4)]), 1003)
    assert progress[4] > 0.75, "where it arrives it is not yet done"


def test_later_frames_change_nothing_of_earlier_ones():
    clip = torch.randn(1, 8, 4, generator=torch.Generator().manual_seed(0))
    net = ProgressNet(4).eval()
    with torch.inference_mode():
        whole, part = net(clip), net(clip[:, :5])
    torch.testing.assert_close(whole[:, :5], part, atol=1e-6, rtol=0)


def test_training_draws_from_its_seed_alone():
    episodes = [torch.randn(6, 4, generator=torch.Generator().manual_seed(number)) for number in range(2)]
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    nets = [train_progress_net(episodes, [True, True], seed=seed, updates=3) for seed in (3, 3, 4)]
    assert torch.equal(torch.rand(3), expected), "others' random numbers were used up"
    one, same, other = (net.last.weight for net in nets)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.slow
def test_it_is_for_progress_alone(pushed):
    _, file = pushed
    with pytest.raises(ConfigError, match="a head for kind=progress, not for kind=success"):
        make_backend(LabelConfig(backend="head", head=str(file)), Budget(BudgetConfig()))


@pytest.mark.slow
def test_by_the_command_line_from_labels_to_the_report(pushed):
    path, file = pushed
    settings = ("--set", "backend=head", "--set", f"head={file}", "--set", "task=push")
    assert robot_rl("label", "run", path, "--kind", "progress", *settings).returncode == 0
    done = robot_rl("label", "report", path, "--name", "progress", "--json")
    report = json.loads(done.stdout)
    assert report["compared"] == 18
    assert report["figures"]["voc_of_successes"]["value"] > 0.6
    assert report["figures"]["final_gap"]["value"] > 0.1
