"""`robot-rl advisor` asks the critics of a run about episodes that another command recorded."""

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
