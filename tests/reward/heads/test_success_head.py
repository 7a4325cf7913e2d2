"""A success head on the frozen encoder that is bundled, on pictures whose meaning is known."""

import dataclasses
import json

import numpy as np
import pytest
import tagged
from pushing import scene
from running import robot_rl

from robot_rl.config.labelling import BudgetConfig, FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError
from robot_rl.reward.budget import Budget
from robot_rl.reward.labels.train_head import HeadSettings, train_for
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.validation.figures import roc_auc
from robot_rl.reward.validation.ground_truth import read_truth
from robot_rl.reward.vlm.head_backend import read_head
from robot_rl.reward.vlm.make_backend import make_backend


def pushed_store(path, episodes=40):
    """In every second episode the square arrives; in the others it stops on the way."""
    with EpisodeStore.create(path, {"task": "push"}) as store:
        for number in range(episodes):
            rng, success, made = np.random.default_rng(number), number % 2 == 0, tagged.valid(number, 3)
            end = 0.0 if success else rng.uniform(0.4, 0.9)
            frames = np.stack([scene(rng, distance) for distance in np.linspace(1.0, end, 4)])
            states = {key: column for key, column in made.observations.items() if not key.startswith("images/")}
            store.append(
                dataclasses.replace(
                    made, observations={**states, "images/front": frames}, metadata={"task": "push", "success": success}
                )
            )
    return path


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A store, and a head trained on half of it by the command."""
    path = pushed_store(tmp_path_factory.mktemp("pushed") / "s")
    file = path.parent / "head.pt"
    done = robot_rl("label", "train", path, "--out", file, "--size", 64, "--task", "push")
    assert done.returncode == 0, done.stderr
    assert "trained on 20 episodes" in done.stdout
    return path, file


def backend(file):
    return make_backend(LabelConfig(backend="head", head=str(file)), Budget(BudgetConfig()))


def test_it_tells_success_from_failure_in_episodes_that_it_has_not_seen(pushed):
    path, file = pushed
    one, known = backend(file), read_head(file).trained_on
    truth, score = [], []
    with EpisodeStore.open(path) as store:
        for episode in store.episodes():
            if episode.episode_id not in known:
                frames = episode.observations["images/front"]
                query = Query(
                    QueryKind.SUCCESS, "push", (Clip(episode.episode_id, "f", "front", (0, 1, 2, 3), frames),)
                )
                truth.append(episode.metadata["success"])
                score.append(one.answer(query).values[0])
    assert len(truth) == 20
    assert roc_auc(np.array(truth), np.array(score)) > 0.9


def test_frames_between_the_first_and_the_last_teach_nothing_for_nobody_knows_what_they_show(pushed):
    with EpisodeStore.open(pushed[0]) as store:
        heads = [
            train_for(
                QueryKind.SUCCESS,
                store,
                read_truth(store),
                HeadSettings("push", "bundled", 64, FramesConfig(count=count), share=0.5, seed=0),
            )[0]
            for count in (2, 4)
        ]
    assert (heads[0].weight == heads[1].weight).all()


def test_what_is_no_head_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"no head")
    with pytest.raises(DataError, match="is no head"):
        read_head(tmp_path / "x")
    with pytest.raises(DataError, match="robot-rl label train"):
        read_head(tmp_path / "none")


def test_it_refuses_other_cameras_tasks_and_kinds(pushed):
    _, file = pushed
    frames = np.zeros((1, 64, 64, 3), np.uint8)
    with pytest.raises(ConfigError, match="trained on camera front, not on wrist"):
        backend(file).answer(Query(QueryKind.SUCCESS, "push", (Clip("e", "f", "wrist", (0,), frames),)))
    with pytest.raises(ConfigError, match="trained for 'push', not for 'open'"):
        backend(file).answer(Query(QueryKind.SUCCESS, "open", (Clip("e", "f", "front", (0,), frames),)))
    with pytest.raises(ConfigError, match=r"a head for kind=success, not for kind=progress; .* --kind progress"):
        make_backend(LabelConfig(backend="head", kind="progress", head=str(file)), Budget(BudgetConfig()))
    with pytest.raises(ConfigError, match="for kind=success and kind=progress"):
        make_backend(LabelConfig(backend="head", kind="preference", head=str(file)), Budget(BudgetConfig()))


def test_too_few_outcomes_are_refused(tmp_path):
    with (
        EpisodeStore.open(pushed_store(tmp_path / "s", 8)) as store,
        pytest.raises(DataError, match="too few to train"),
    ):
        settings = HeadSettings("push", "random", 64, FramesConfig(count=2), share=0.9, seed=0)
        train_for(QueryKind.SUCCESS, store, read_truth(store), settings)


@pytest.mark.slow
def test_by_the_command_line_the_report_leaves_out_what_it_was_trained_on(pushed):
    path, file = pushed
    settings = ("--set", "backend=head", "--set", f"head={file}", "--set", "task=push")
    assert robot_rl("label", "run", path, *settings).returncode == 0
    report = json.loads(robot_rl("label", "report", path, "--json").stdout)
    assert report["compared"] == 20
    assert report["figures"]["roc_auc"]["value"] > 0.9
    assert any("20 episodes that the labeller was trained on" in note for note in report["notes"])
    refused = robot_rl("label", "train", path, "--out", file, "--frames", 3)
    assert "success is learned from first and last frames" in refused.stderr
