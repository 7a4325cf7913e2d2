"""`robot-rl advisor` asks the critics of a run about episodes that another command recorded."""

import gymnasium
import numpy as np
import pytest
from running import SMALL

from robot_rl.advisor.traces import read_traces
from robot_rl.cli.main import main
from robot_rl.data.store.store import EpisodeStore


@pytest.mark.slow
def test_the_critics_of_a_run_are_asked_about_every_step_of_its_evaluation(tmp_path, capsys):
    run, evaluated = tmp_path / "run", tmp_path / "evaluated"
    assert main(["train", "reach", *SMALL, "--out", str(run)]) == 0
    assert main(["eval", str(run), "--episodes", "3", "--record", str(evaluated)]) == 0
    traces, period = read_traces(run, evaluated)
    with EpisodeStore.open(evaluated) as store:
        rows = store.summaries()
    assert [len(trace.values) for trace, _ in traces] == [row.length + 1 for row in rows]
    assert [success for _, success in traces] == [row.success for row in rows]
    assert all(np.isfinite(trace.values).all() for trace, _ in traces)
    assert period > 0
    assert main(["advisor", str(run), "--episodes", str(evaluated)]) != 0
    assert "at least 8 are needed" in capsys.readouterr().err
    assert main(["advisor", str(run), "--episodes", str(evaluated), "--at", "doubt=0.5"]) == 0
    assert capsys.readouterr().out.startswith("doubt  threshold 0.5: ")
    with pytest.raises(SystemExit):
        main(["advisor", str(run), "--episodes", str(evaluated), "--at", "guess=0.5"])
    assert "RULE one of time, value, doubt" in capsys.readouterr().err


class Push(gymnasium.Env):
    """Its info tells success, if it is made so."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, judged):
        self.info = {"is_success": False} if judged else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, self.info


@pytest.mark.parametrize(
    ("judged", "begun", "says"),
    [
        (False, True, "judges no success, so no failure of it can be predicted"),
        (True, False, "has no episode that the policy led alone, with a known outcome"),
        (True, True, "it has no critics that have learned (algorithm.name=sac, 6 env steps)"),
    ],
)
def test_where_nothing_can_be_predicted_one_line_says_why(tmp_path, capsys, judged, begun, says):
    gymnasium.register("Push-v0", entry_point=Push, kwargs={"judged": judged}, max_episode_steps=3)
    run, store = tmp_path / "run", tmp_path / "store"
    try:
        small = ["--steps", "6", "--episodes", "1", "--set", "evaluation.video_episodes=0"]
        assert main(["train", "gym:Push-v0", *small, "--out", str(run)]) == 0
        assert main(["eval", str(run), "--episodes", "1", "--record", str(store)]) == 0
        if not begun:
            store = tmp_path / "empty"
            EpisodeStore.create(store).close()
        capsys.readouterr()
        assert main(["advisor", str(run), "--episodes", str(store), "--at", "doubt=0.5"]) == 1
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert says in line
    finally:
        del gymnasium.registry["Push-v0"]
