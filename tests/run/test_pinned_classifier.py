"""The classifier of a run is a copy in its directory: what is resumed is judged by the same one, and no other."""

from dataclasses import replace

import pytest
import torch

from robot_rl.config.components import TrainConfig
from robot_rl.config.reward import RewardConfig
from robot_rl.errors import CheckpointError, ConfigError, DataError, RunDirectoryError
from robot_rl.reward.classifier.classifier import RewardClassifier
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.reward.validation.certificate import certificate_path
from robot_rl.run.directory.pinned_files import PINNED_CLASSIFIER
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.make_reward import RewardSetup
from robot_rl.run.resume import checkpoint_to_resume


def write(path, threshold=0.5):
    head = SuccessHead("bundled", 64, "front", "reach", (), *(torch.zeros(1) for _ in range(4)))
    RewardClassifier("reach", {"front": head}, (1.0,), 0.0, threshold, 3).write(path)
    return path


@pytest.fixture
def started(tmp_path):
    """A run that was started with a classifier: its directory, and its configuration."""
    first = write(tmp_path / "first.pt")
    certificate_path(first).write_text("{}")
    config = TrainConfig(task="reach", reward=RewardConfig(kind="classifier", path=str(first)))
    with RunDirectory.create(tmp_path / "run", config) as run:
        RewardSetup.from_config(config.reward).pin(run)
    return run.path, config


def test_a_resumed_run_has_the_classifier_that_it_was_started_with(started, tmp_path, caplog):
    caplog.set_level("INFO")
    run, config = started
    content, fact = (run / PINNED_CLASSIFIER.copy).read_bytes(), RunDirectory.read_facts(run)["classifier"]
    assert content == (tmp_path / "first.pt").read_bytes()
    assert certificate_path(run / PINNED_CLASSIFIER.copy).read_text() == "{}"
    own = RewardSetup.of_run(run, config.reward).classifier
    assert (own.path, own.sha256, fact) == (
        run / PINNED_CLASSIFIER.copy,
        fact["sha256"],
        {**fact, "path": str(tmp_path / "first.pt")},
    )
    with RunDirectory.resume(run) as again:
        RewardSetup.of_run(run, config.reward).pin(again)
    assert RunDirectory.read_facts(run)["classifier"] == fact

    write(tmp_path / "first.pt", threshold=0.9)  # e.g. trained again
    assert RewardSetup.of_run(run, config.reward).classifier.content == content
    assert "was changed since; the run goes on with its own copy" in caplog.text
    (tmp_path / "first.pt").unlink()
    assert RewardSetup.of_run(run, config.reward).classifier.content == content


def test_another_classifier_is_refused_and_both_are_named(started, tmp_path):
    run, config = started
    other = replace(config.reward, path=str(write(tmp_path / "other.pt", threshold=0.9)))
    with pytest.raises(ConfigError) as refused:
        RewardSetup.of_run(run, other)
    for path in ("first.pt", "other.pt"):
        assert str(tmp_path / path) in str(refused.value)
    assert RewardSetup.of_run(run, config.reward).classifier.sha256 in str(refused.value)
    with pytest.raises(DataError, match="no reward classifier there"):
        RewardSetup.of_run(run, replace(config.reward, path="nowhere.pt"))

    same = replace(config, reward=replace(config.reward, path=str(write(tmp_path / "same.pt"))))
    assert RewardSetup.of_run(run, same.reward).classifier.path == run / PINNED_CLASSIFIER.copy
    with RunDirectory.resume(run) as again:
        assert checkpoint_to_resume(again, same) is None  # it may go on under the other name
        with pytest.raises(CheckpointError, match="other settings of reward"):
            checkpoint_to_resume(again, replace(config, reward=RewardConfig()))


def test_a_copy_that_is_gone_or_was_changed_is_named_with_its_cure(started):
    run, config = started
    write(run / PINNED_CLASSIFIER.copy, threshold=0.1)
    with pytest.raises(RunDirectoryError, match=r"is not the classifier that the run was started with.*first\.pt"):
        RewardSetup.of_run(run, config.reward)
    (run / PINNED_CLASSIFIER.copy).unlink()
    with pytest.raises(RunDirectoryError, match=r"is gone; it was taken from .*first\.pt: bring it back"):
        RewardSetup.of_run(run, config.reward)
