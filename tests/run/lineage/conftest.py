"""A small run that others begin from."""

from dataclasses import replace

import pytest
from running import one_thread

from robot_rl.config.components import EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.run.train import train

CONFIG = TrainConfig(
    task="reach",
    demonstrations=2,
    env_steps=90,
    warmup_steps=20,
    update_to_data=1,
    checkpoint_interval=40,
    sac=SACConfig(hidden_sizes=(16, 16)),
    replay=ReplayConfig(batch_size=8),
    evaluation=EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0),
)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="session")
def config():
    return CONFIG


@pytest.fixture(scope="session")
def old(tmp_path_factory):
    """A finished run of 90 steps; its checkpoints are after 40 or a few more, and after 90."""
    path = tmp_path_factory.mktemp("lineage") / "old"
    train(replace(CONFIG, seed=5), path, resume=False)
    return path
