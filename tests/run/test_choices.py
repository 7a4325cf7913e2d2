"""A run in an environment whose actions are choices: trained, stopped, resumed, evaluated, exported."""

import json

import numpy as np
import pytest

from robot_rl.cli.main import main
from robot_rl.data.store.store import EpisodeStore

SMALL = ("sac.hidden_sizes=[16]", "update_to_data=1", "warmup_steps=20", "replay.batch_size=16")
BRIEF = ("evaluation.episodes=1", "evaluation.video_episodes=0", "evaluation.curve_interval=0")


def settings(*lines):
    return [word for line in (*SMALL, *BRIEF, *lines) for word in ("--set", line)]


@pytest.mark.slow
def test_from_training_to_export(tmp_path, capsys):
    run, dataset = tmp_path / "run", tmp_path / "dataset"
    assert main(["train", "gym:CartPole-v1", "--out", str(run), "--steps", "60", *settings()]) == 0
    assert main(["train", "--resume", "--out", str(run), "--steps", "120"]) == 0
    capsys.readouterr()
    assert main(["eval", str(run), "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["return_mean"] >= 8.0, "no episode is shorter"
    with EpisodeStore.open(run / "episodes") as store:
        actions = np.concatenate([episode.action for episode in store.episodes()])
    assert actions.shape == (120, 1)
    assert set(np.unique(actions).tolist()) == {-1.0, 1.0}
    assert main(["data", "export", str(run), "--out", str(dataset)]) == 0
    assert (dataset / "meta" / "info.json").is_file()
