"""The expert of an environment of others takes over while it trains, and never while it is evaluated."""

import numpy as np
import pytest

from robot_rl.cli.main import main
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.run.directory.metrics import read_metrics

SMALL = ("sac.hidden_sizes=[8]", "update_to_data=1", "warmup_steps=10", "replay.batch_size=8")
BRIEF = ("evaluation.episodes=1", "evaluation.video_episodes=0", "evaluation.curve_interval=0")
EXPERT = ("environment.expert=test_takeovers:expert", "environment.takeovers=0.3", "environment.takeover_steps=2")


def expert(env):
    return lambda observation: np.array([0.125])


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
def test_it_takes_over_in_training_alone(tmp_path, monkeypatch, enabled):
    run, evaluated = tmp_path / "run", tmp_path / "evaluated"
    lines = (*SMALL, *BRIEF, *EXPERT, f"intervention.enabled={enabled}")
    settings = [word for line in lines for word in ("--set", line)]
    assert main(["train", "gym:line_world:line_world/Line-v0", "--out", str(run), "--steps", "40", *settings]) == 0
    with EpisodeStore.open(run / "episodes") as store:
        episodes = list(store.episodes())
    led = np.concatenate([episode.source for episode in episodes]) == Source.SCRIPT
    actions = np.concatenate([episode.action for episode in episodes])
    assert led.any() == enabled
    assert (actions[led] == 0.125).all()
    records = read_metrics(run / "metrics.jsonl", "episode")
    assert sum(record["intervention_steps"] for record in records) == led.sum()

    assert main(["eval", str(run), "--episodes", "3", "--record", str(evaluated)]) == 0
    with EpisodeStore.open(evaluated) as store:
        assert all((episode.source == Source.POLICY).all() for episode in store.episodes())
