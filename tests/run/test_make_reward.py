"""The reward set-up: what it observes, filters and pins, for all kinds of reward."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from fakes import fake_workcell

from robot_rl.config.components import TrainConfig
from robot_rl.config.reward import RewardConfig, ShapingConfig
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, RunDirectoryError, UncertifiedError, UnknownNameError
from robot_rl.reward.classifier.classifier import RewardClassifier
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import ProgressHead, ProgressNet
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.make_reward import RewardSetup

SPEC = fake_workcell().task.spec
SIZE = 32
POLICIES = [
    WorkcellOptions(),
    WorkcellOptions(cameras=("side",), image_size=(84, 84)),
    WorkcellOptions(cameras=("wrist", "front"), image_size=(64, 64)),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A classifier of two cameras and a progress head."""
    folder = tmp_path_factory.mktemp("files")
    head = SuccessHead("bundled", SIZE, "front", SPEC.name, (), *(torch.zeros(1) for _ in range(4)))
    RewardClassifier(SPEC.name, {"front": head, "top": head}, (1.0, 1.0), 0.0, 0.5, 3).write(folder / "classifier.pt")
    size = FrameFeatures("bundled", SIZE)(np.zeros((1, SIZE, SIZE, 3), np.uint8)).shape[1]
    net = ProgressNet(3).eval()
    shaping = ProgressHead("bundled", SIZE, "wrist", SPEC.instruction, (), torch.zeros(size), torch.randn(size, 3), net)
    shaping.write(folder / "head.pt")
    return folder


def configs(files):
    shaping = ShapingConfig(head=str(files / "head.pt"))
    classifier = RewardConfig(kind="classifier", path=str(files / "classifier.pt"))
    shaped = [replace(config, shaping=shaping, allow_unfit=True) for config in (RewardConfig(), classifier)]
    return [RewardConfig(), classifier, *shaped]


def test_observing_adds_what_is_needed_and_changes_nothing_for_the_policy(files):
    for config, policy in itertools.product(configs(files), POLICIES):
        setup = RewardSetup.from_config(config)
        observed = setup.observe(policy)
        needed = {"front", "top"} if setup.classifier else set()
        needed |= {"wrist"} if setup.head else set()
        assert observed.cameras[: len(policy.cameras)] == policy.cameras
        assert set(observed.cameras) == set(policy.cameras) | needed
        assert len(set(observed.cameras)) == len(observed.cameras)
        if policy.cameras:
            assert observed.image_size == policy.image_size
        elif needed:
            assert observed.image_size == (SIZE, SIZE)
        assert setup.observe(observed) == observed
        assert replace(observed, cameras=policy.cameras, image_size=policy.image_size) == policy


def test_what_is_pinned_is_read_back_when_the_originals_are_gone(files, tmp_path):
    for number, config in enumerate(configs(files)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in ("classifier.pt", "head.pt"):
            (folder / name).write_bytes((files / name).read_bytes())
        shaping = ShapingConfig(head=str(folder / "head.pt") if config.shaping.head else "")
        config = replace(config, path=str(folder / "classifier.pt") if config.path else "", shaping=shaping)
        setup = RewardSetup.from_config(config)
        with RunDirectory.create(folder / "run", TrainConfig(reward=config)) as run:
            setup.pin(run)
            setup.pin(run)  # again is the same
        for name in ("classifier.pt", "head.pt"):
            (folder / name).unlink()
        again = RewardSetup.of_run(folder / "run", config)
        for before, after in ((setup.classifier, again.classifier), (setup.head, again.head)):
            assert (before is None) == (after is None)
            if before is not None:
                assert (before.sha256, before.content) == (after.sha256, after.content)
                assert after.path.parent == folder / "run"
        assert RewardSetup.of_run(folder / "run", config, shaped=False).head is None
        pinned = {path.name for path in (folder / "run").glob("*.pt")}
        expected = {"classifier.pt"} if setup.classifier else set()
        assert pinned == expected | ({"progress_head.pt"} if setup.head else set())
        for path in (folder / "run").glob("*.pt"):
            path.unlink()
            with pytest.raises(RunDirectoryError, match="is gone"):
                RewardSetup.of_run(folder / "run", config)


def test_the_reward_of_the_task_leaves_the_workcell_as_it_is():
    cell, setup = fake_workcell(), RewardSetup.from_config(RewardConfig())
    assert setup.workcell(lambda: cell) is cell
    assert setup.potential(cell.task.spec) is None


def test_labels_leave_the_success_open_by_an_outcome_filter_of_their_own():
    cell = fake_workcell()
    labelled = RewardSetup(RewardConfig(kind="labels", path="somewhere")).workcell(lambda: cell)
    assert labelled.judges[: len(cell.judges)] == cell.judges
    assert len(labelled.judges) == len(cell.judges) + 1


def test_a_workcell_that_the_classifier_does_not_fit_is_closed(files):
    config = replace(configs(files)[1], allow_unfit=True)
    setup = RewardSetup.from_config(config)
    closed = []
    for spec, error in (
        (replace(SPEC, name="other"), ConfigError),
        (replace(SPEC, cameras=("front",)), UnknownNameError),
    ):
        cell = fake_workcell()
        cell.task.spec = spec
        with pytest.raises(error):
            setup.workcell(lambda cell=cell: replace(cell, close=lambda: closed.append(True)))
    assert len(closed) == 2
    with pytest.raises(UncertifiedError):
        RewardSetup.from_config(replace(config, allow_unfit=False)).workcell(
            lambda: pytest.fail("made before the check")
        )


@pytest.mark.parametrize(
    ("kind", "cure"), [("classifier", "robot-rl classifier train"), ("labels", "robot-rl label run")]
)
def test_a_kind_that_needs_a_path_names_what_makes_one(kind, cure):
    with pytest.raises(ConfigError, match=f"reward.kind={kind} needs reward.path.*{cure}"):
        RewardSetup.from_config(RewardConfig(kind=kind))
