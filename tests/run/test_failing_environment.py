"""An environment that fails while a run trains in it: one line, what was recorded stays, and the run goes on later."""

import gymnasium
import numpy as np
import pytest

from robot_rl.cli.main import main
from robot_rl.data.store.store import EpisodeStore

SMALL = ("sac.hidden_sizes=[8]", "update_to_data=1", "warmup_steps=10", "replay.batch_size=8", "checkpoint_interval=10")
BRIEF = ("evaluation.episodes=1", "evaluation.video_episodes=0", "evaluation.curve_interval=0")


class Faulty(gymnasium.Env):
    """Episodes of 10 steps; from step `fails_at` of all on it does what `fault` says."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    fault, fails_at, steps = "", 35, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        Faulty.steps += 1
        seen = np.full(2, action[0] / 2, np.float32)
        if Faulty.steps >= self.fails_at:
            if self.fault == "raise":
                raise OSError("the cable is out")
            if self.fault == "nan":
                seen[0] = np.nan
            if self.fault == "shape":
                seen = np.zeros(5, np.float32)
        return seen, float(action[0]), False, False, {}


gymnasium.register("test_fault/Faulty-v0", entry_point=Faulty, max_episode_steps=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [("raise", "failed in step: OSError: the cable is out"), ("nan", "has a NaN"), ("shape", "does not fit its space")],
)
def test_what_was_recorded_stays_and_the_run_goes_on(fault, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Faulty, "steps", 0)
    monkeypatch.setattr(Faulty, "fault", fault)
    run = tmp_path / "run"
    settings = [word for line in (*SMALL, *BRIEF) for word in ("--set", line)]
    assert main(["train", "gym:test_fault/Faulty-v0", "--out", str(run), "--steps", "60", *settings]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("robot-rl: gym:test_fault/Faulty-v0")
    assert said in last
    with EpisodeStore.open(run / "episodes") as store:
        kept = store.ids()
    assert kept[:3] == ["episode-00000", "episode-00001", "episode-00002"]

    monkeypatch.setattr(Faulty, "fault", "")
    assert main(["train", "--resume", "--out", str(run)]) == 0
    with EpisodeStore.open(run / "episodes") as store:
        assert store.ids()[:3] == kept[:3]
        assert sum(len(episode) for episode in store.episodes()) == 60
    capsys.readouterr()
    assert main(["inspect", str(run)]) == 0
    assert "return_mean: " in capsys.readouterr().out, "it has no success to show"
