"""A run whose policy decides for several steps: resumed, evaluated at other rates of decisions, and as a base."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from running import learned, same, timeless

from robot_rl.base_policy.contract import BaseSetup, Stamped, make_base
from robot_rl.cli.main import main
from robot_rl.config.components import AlgorithmConfig, BaseConfig, SACConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.train import train


@pytest.fixture(scope="module")
def chunked(config):
    steps = 100  # no multiple of an episode's 40 steps, nor of a chunk
    return replace(config, env_steps=steps, algorithm=AlgorithmConfig(chunk=3), sac=SACConfig(hidden_sizes=(16,)))


@pytest.fixture(scope="module")
def run(chunked, tmp_path_factory):
    path = tmp_path_factory.mktemp("chunks") / "run"
    return path, train(chunked, path, resume=False)


def test_it_resumes_to_the_same_result_and_not_with_another_chunk(chunked, run, tmp_path):
    path, summary = run
    resumed = shutil.copytree(path, tmp_path / "resumed")
    (resumed / "checkpoint.pt.previous").replace(resumed / "checkpoint.pt")
    assert 0 < load_checkpoint(resumed / "checkpoint.pt")["env_steps"] < 100
    assert timeless(train(chunked, resumed, resume=True)) == timeless(summary)
    assert same(learned(resumed), learned(path))
    with pytest.raises(CheckpointError, match="other settings of algorithm"):
        train(replace(chunked, algorithm=AlgorithmConfig(chunk=2)), resumed, resume=True)


def test_its_decisions_are_evaluated_at_other_rates_too(run, capsys):
    path, _ = run
    own = 10.0 / 3
    answer = evaluate_run(path, decisions=(own, 10.0, 2.0))
    scores = answer["frequency_average"]
    assert [row["rate_hz"] for row in scores["by_rate"]] == [own, 10.0, 2.0]
    assert scores["by_rate"][0]["return_mean"] == answer["return_mean"], "at its own rate it plays its chunks"
    assert scores["return_mean"] == pytest.approx(np.mean([row["return_mean"] for row in scores["by_rate"]]))
    with pytest.raises(
        ConfigError, match=r"4 decisions a second, with a control period of 0\.1 s; valid: 10, 5, 3\.33"
    ):
        evaluate_run(path, decisions=(4.0,))
    assert main(["eval", str(path), "--decisions", "10", "5"]) == 0
    assert "by decisions a second" in capsys.readouterr().out
    for text, said in (("0", "must be a number above 0"), ("fast", "must be a number above 0")):
        with pytest.raises(SystemExit):
            main(["eval", str(path), "--decisions", text])
        assert said in capsys.readouterr().err


def test_as_a_base_it_proposes_its_chunks(chunked, run):
    path, _ = run
    with RobotEnv(make_workcell("reach")) as env:
        config = replace(chunked, algorithm=AlgorithmConfig(), base=BaseConfig(kind="run", path=str(path)))
        base = make_base(BaseSetup(str(path), env.environment_spec, env.observation_specs, config))
    assert base.spec.horizon == 3
    with EpisodeStore.open(path / "episodes") as store:
        episode = store.read(store.ids()[0])
    chunk = base.plan([Stamped(int(episode.stamp_obs[t]), episode.observation(t)) for t in (0, 1)])
    assert chunk.actions.shape == (3, episode.action.shape[1])
    assert np.diff(chunk.stamps).tolist() == [100_000_000] * 2
    assert chunk.stamps[0] == episode.stamp_obs[1]
    base.close()


def test_replay_of_a_run_with_another_chunk_is_not_taken(run, tmp_path, capsys):
    path, _ = run
    for parts, said in (("replay", "its windows are others"), ("policy", "algorithm.chunk is 3 there and 1 here")):
        flags = ["--init-from", str(path), "--init", parts, "--out", str(tmp_path / parts), "--steps", "50"]
        settings = ["--set", "sac.hidden_sizes=[16]", "--set", "demonstrations=1"]
        assert main(["train", "reach", *flags, *settings]) != 0
        assert said in capsys.readouterr().err
