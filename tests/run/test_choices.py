"""A run in an environment whose actions are choices: trained, stopped, resumed, evaluated, exported."""

import json

import numpy as np
import pytest

from robot_rl.cli.main import main
from robot_rl.data.store.store import EpisodeStore
from robot_rl.run.directory.metrics import read_metrics

SMALL = ("sac.hidden_sizes=[16]", "update_to_data=1", "warmup_steps=20", "replay.batch_size=16")
BRIEF = ("evaluation.episodes=1", "evaluation.video_episodes=0", "evaluation.curve_interval=60")
BOTH = ("evaluation.curve_newest=true", "evaluation.curve_episodes=1")


def settings(*lines):
    return [word for line in (*SMALL, *BRIEF, *lines) for word in ("--set", line)]


@pytest.mark.slow
def test_from_training_to_export(tmp_path, capsys):
    run, dataset = tmp_path / "run", tmp_path / "dataset"
    assert main(["train", "gym:CartPole-v1", "--out", str(run), "--steps", "60", *settings(*BOTH)]) == 0
    assert main(["train", "--resume", "--out", str(run), "--steps", "120"]) == 0
    records = read_metrics(run / "metrics.jsonl")
    (update,) = [row for row in records if row["kind"] == "update"]
    assert (update["replay_demonstrations"], update["replay_online"]) == (0, 120)
    assert np.isfinite([update["q_online"], update["critic_gradient"]]).all()
    assert "q_demonstrations" not in update
    evaluated = [row for row in records if row["kind"] in ("curve", "evaluation")]
    assert len(evaluated) == 4
    for row in (*evaluated, json.loads((run / "summary.json").read_text())):
        assert row["newest_return_mean"] >= 8.0
    capsys.readouterr()
    assert main(["eval", str(run), "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["return_mean"] >= 8.0, "no episode is shorter"
    with EpisodeStore.open(run / "episodes") as store:
        actions = np.concatenate([episode.action for episode in store.episodes()])
    assert actions.shape == (120, 1)
    assert set(np.unique(actions).tolist()) == {-1.0, 1.0}
    assert main(["data", "export", str(run), "--out", str(dataset)]) == 0
    assert (dataset / "meta" / "info.json").is_file()
