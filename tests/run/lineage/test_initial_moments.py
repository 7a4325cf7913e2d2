"""What networks know of the spread of observations, in a run that begins with replay and demonstrations of another."""

from dataclasses import replace

import numpy as np
import pytest

from robot_rl.config.components import TrainConfig
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.data.replay.row_moments import RowMoments
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.lineage.initial_parts import InitialParts
from robot_rl.run.lineage.source_run import SourceRun
from robot_rl.run.train import train


def expert(env):
    return lambda observation: -np.sign(observation)


@pytest.fixture
def begun(config):
    guest = EnvironmentConfig(expert="test_initial_moments:expert")
    return replace(config, task="gym:line_world:line_world/Line-v0", environment=guest, env_steps=40)


def learned(run):
    return load_checkpoint(run / "checkpoint.pt")["learner"]


@pytest.mark.parametrize("parts", [("replay", "demonstrations"), ("policy", "critics", "replay", "demonstrations")])
def test_demonstrations_that_are_taken_count_once(begun: TrainConfig, tmp_path, parts):
    train(begun, tmp_path / "old", resume=False)
    initial = InitialParts.of(SourceRun.read(tmp_path / "old", None), parts)
    train(replace(begun, seed=6), tmp_path / "new", resume=False, initial=initial)
    for run in ("old", "new"):
        learner = learned(tmp_path / run)
        seen = np.concatenate([learner[memory]["state"] for memory in ("demos", "online")]).astype(float)
        assert learner["moments"]["count"] == len(seen), run
        np.testing.assert_allclose(learner["moments"]["mean"], seen.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(learner["moments"]["squares"] / len(seen), seen.var(axis=0), atol=1e-6)


@pytest.mark.parametrize("gone", [0, 1, 7, 19, 20, 25])
def test_rows_that_are_taken_back_were_never_counted(gone):
    rows = np.random.default_rng(0).normal([3.0, -100.0], [0.1, 20.0], (20, 2))
    every, kept = RowMoments(2), RowMoments(2)
    for number, row in enumerate(rows):
        every.add(row)
        if number >= gone:
            kept.add(row)
    every.forget(np.resize(rows, (gone, 2)))
    assert every.count == kept.count
    np.testing.assert_allclose(every.mean, kept.mean)
    np.testing.assert_allclose(every.deviation, kept.deviation, atol=1e-6)
