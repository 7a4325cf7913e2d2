"""The operator of a training is called where a rule expects a failure: the script comes, a person is told."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from running import SMALL
from tagged import episode, steps

from robot_rl.calling.advisor import Advisor, make_advisor
from robot_rl.cli.main import main
from robot_rl.config.operator_profile import CallConfig
from robot_rl.data.schema import OPERATOR_SOURCES, Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_environment

NEVER = ["--set", "intervention.call.rule=time", "--set", "intervention.call.threshold=1"]
SOON = ["--set", "intervention.call.rule=time", "--set", "intervention.call.threshold=0.3"]
ONLY = ["--set", "intervention.call.only=true"]


@pytest.fixture(scope="module")
def spec():
    env = make_environment("reach")
    env.close()
    return replace(env.environment_spec, max_steps=10, control_period=0.1)


def watched(config, spec, sources, value=lambda: None, env_steps=lambda: 0):
    """What an advisor did at each step of an episode in which these were in control: C a call, o its end."""
    happened, log = [], []
    advisor = Advisor(
        config, spec, value, call=lambda reason: log.append("C"), over=lambda: log.append("o"), env_steps=env_steps
    )
    whole = episode(0, len(sources), sources=sources)
    advisor.on_start("episode-0", {})
    for step in steps(whole):
        advisor.on_step(step, {})
        happened.append("".join(log) or ".")
        log.clear()
    advisor.on_end(whole, None)
    return " ".join([*happened, *log])


def test_it_calls_once_until_somebody_has_come_and_the_policy_had_another_chance(spec):
    policy, human = Source.POLICY, Source.HUMAN
    config = CallConfig(rule="time", threshold=0.3, rest_s=0.2)
    assert watched(config, spec, [policy] * 8) == ". . C . . . . . o"
    assert watched(config, spec, [*[policy] * 4, human, human, *[policy] * 4]) == ". . C . o . . C . . o"
    assert watched(config, spec, [human, *[policy] * 3]) == ". . C . o"
    assert watched(replace(config, threshold=0.9), spec, [policy] * 8) == ". . . . . . . ."


def test_what_the_critics_expect_counts_as_a_share_of_the_largest_return_of_the_task(spec):
    config, wide = CallConfig(rule="doubt", threshold=0.3), replace(spec, return_range=(0.0, 10.0))
    assert "C" not in watched(config, wide, [Source.POLICY] * 10, lambda: 9.0)
    assert watched(config, wide, [Source.POLICY] * 6, lambda: 5.0) == ". . . . . C o"
    assert watched(config, spec, [Source.POLICY] * 4) == ". . C . o", "unknown: nothing is expected"


def test_what_is_not_known_yet_of_an_episode_is_taken_for_what_is_first_known(spec):
    config, policy = CallConfig(rule="value", threshold=0.3), [Source.POLICY] * 6
    late = iter([None, None, 0.5, 0.5, None, 0.5, 0.5])
    assert "C" not in watched(config, spec, policy, lambda: next(late))
    falling = iter([None, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1])
    assert "C" in watched(config, spec, policy, lambda: next(falling))


def test_a_threshold_that_rises_calls_later_and_later(spec):
    config, policy = CallConfig(rule="time", threshold={0: 0.2, 100: 0.6}), [Source.POLICY] * 8
    assert watched(config, spec, policy) == ". C . . . . . . o"
    assert watched(config, spec, policy, env_steps=lambda: 50) == ". . . C . . . . o"
    assert watched(config, spec, policy, env_steps=lambda: 900) == ". . . . . C . . o"


def test_where_nobody_else_is_told_a_call_is_a_line_and_one_beyond_the_budget_is_no_call(spec):
    env, learner, lines, made = SimpleNamespace(environment_spec=spec), SimpleNamespace(value=None), [], []
    config = CallConfig(rule="time", threshold=0.3, per_hour=1)
    count = partial(made.append, 1)
    told = {"count": count, "show": [], "log": lines.append, "command": "", "env_steps": lambda: 0}
    advisor = make_advisor(config, env, learner, **told)
    for number in range(2):
        whole = episode(number, 5, sources=[Source.POLICY] * 5)
        advisor.on_start(whole.episode_id, {})
        for step in steps(whole):
            advisor.on_step(step, {})
        advisor.on_end(whole, None)
    assert made == [1]
    assert [line.partition(":")[0] for line in lines] == ["time", "not called, as there were 1 calls within the hour"]


def led(run):
    """Of each online episode, the steps in which an operator led."""
    with EpisodeStore.open(run / "episodes") as store:
        online = [row.episode_id for row in store.summaries() if not row.facts.demonstration]
        return [np.isin(store.sources(name), OPERATOR_SOURCES) for name in online]


def calls(run):
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [row["calls"] for row in rows if row["kind"] == "episode"]


FEW = (
    *(*SMALL, "--episodes", "1", "--set", "demonstrations=1"),
    *("--set", "update_to_data=1", "--set", "evaluation.curve_interval=0"),
)
"""Flags of a training in which the operator may be called a few times."""
SHORT = (*FEW, "--steps", "40")
"""And of one that is over soon after the first call."""


def test_a_script_that_only_comes_when_called_comes_then_and_at_no_other_time(tmp_path):
    assert main(["train", "peg_insert", *SHORT, *SOON, *ONLY, "--out", str(tmp_path / "called")]) == 0
    first = led(tmp_path / "called")[0]
    assert not first[:30].any(), "3 tenths of its 100 steps have not passed"
    assert first[30]
    assert calls(tmp_path / "called")[0] >= 1
    assert main(["train", "peg_insert", *SHORT, *NEVER, *ONLY, "--out", str(tmp_path / "never")]) == 0
    assert not any(led.any() for led in led(tmp_path / "never"))


def test_with_two_arms_the_hand_whose_turn_it_is_comes(tmp_path):
    assert main(["train", "handover", *FEW, *SOON, *ONLY, "--out", str(tmp_path / "run")]) == 0
    limit = make_environment("handover").environment_spec.max_steps
    first = led(tmp_path / "run")[0]
    assert not first[: int(0.3 * limit)].any()
    assert first.any() == (len(first) > 0.3 * limit)


@pytest.mark.slow
def test_a_person_is_called_by_their_own_script_as_often_as_the_budget_allows(tmp_path, capsys):
    script, heard = tmp_path / "send", tmp_path / "heard"
    script.write_text(f'#!/bin/sh\necho "$1" >> {heard}\n')
    script.chmod(0o755)
    budget = ["--set", "intervention.call.per_hour=1", "--set", "intervention.enabled=false"]
    run = tmp_path / "run"
    assert main(["train", "peg_insert", *FEW, *SOON, *budget, "--call", str(script), "--out", str(run)]) == 0
    assert heard.read_text() == "time: the policy may fail (risk 0.30); take over\n"
    assert sum(calls(run)) == 1
    assert not any(led.any() for led in led(run)), "the script of the simulation takes over nowhere"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--call", "true"], "--call needs a rule that predicts failure"),
        (ONLY, "intervention.call.only needs intervention.call.rule"),
        ([*SOON, "--call", "nowhere --now"], "there is no command 'nowhere'"),
        (
            ["--set", "algorithm.name=bc", "--set", "intervention.call.rule=value"],
            "intervention.call.rule=value with algorithm.name=bc: it asks the critics, and bc has none",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_and_leaves_no_run(tmp_path, capsys, flags, says):
    assert main(["train", "reach", *SMALL, *flags, "--out", str(tmp_path / "run")]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert says in last
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("uncalled") / "run"
    assert main(["train", "reach", *SHORT, "--out", str(path)]) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--call", "true"], ONLY, [*SOON, "--call", "nowhere --now"]])
def test_a_fork_that_is_refused_leaves_no_directory(run, tmp_path, flags):
    assert main(["train", "--fork", str(run), *flags, "--out", str(tmp_path / "fork")]) == 1
    assert not (tmp_path / "fork").exists()


def test_where_no_script_comes_it_cannot_be_the_only_way(tmp_path, capsys):
    task = ["train", "gym:Pendulum-v1", *SMALL, "--set", "demonstrations=0"]
    assert main([*task, *SOON, *ONLY, "--out", str(tmp_path / "run")]) == 1
    assert "intervention.call.only is for the scripted operator of a simulation" in capsys.readouterr().err


def test_a_fork_to_where_no_script_comes_leaves_no_directory(tmp_path, capsys):
    run, fork = str(tmp_path / "run"), tmp_path / "fork"
    small = [
        "--steps",
        "6",
        "--episodes",
        "1",
        "--set",
        "environment.max_steps=3",
        "--set",
        "evaluation.video_episodes=0",
    ]
    assert main(["train", "gym:Pendulum-v1", *small, "--out", run]) == 0
    for person in ([], ["--console"]):
        assert main(["train", "--fork", run, *SOON, *ONLY, *person, "--out", str(fork)]) == 1
        assert "intervention.call.only is for the scripted operator of a simulation" in capsys.readouterr().err
    assert not fork.exists()
