"""`robot-rl base`, as a user calls it."""

import json
import re
import signal
from dataclasses import replace

import numpy as np
import pytest
from running import one_thread, start

from robot_rl.cli.commands.base import base_settings
from robot_rl.cli.main import main
from robot_rl.config.load import load_config
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import check_episode

FEW = ("--set", "base.updates=60", "--set", "replay.batch_size=16")


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    assert main(["demo", "reach", "--episodes", "2", "--out", str(folder / "demos")]) == 0
    train = ["base", "train", "reach", "--demos", str(folder / "demos"), "--out", str(folder / "base.pt")]
    assert main([*train, *FEW]) == 0
    return folder, train


def evaluate(folder):
    """The call that evaluates the trained base."""
    return ["base", "eval", "reach", "--base", f"chunk:{folder / 'base.pt'}", "--episodes", "2"]


def test_a_base_is_trained_and_evaluated_alone(trained, capsys):
    folder, train = trained
    assert main([*evaluate(folder), "--seed", "100", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["episodes"], answer["name"]) == (2, f"chunk:{folder / 'base.pt'}")
    assert main([*train, *FEW]) == 1
    assert "exists already; choose another --out" in capsys.readouterr().err


def test_its_episodes_are_kept(trained, tmp_path, capsys):
    folder, _ = trained
    played = tmp_path / "played"
    call = [*evaluate(folder), "--record", str(played)]
    assert main(call) == 0
    with EpisodeStore.open(played) as store:
        episodes = list(store.episodes())
        assert store.metadata["base"]["name"] == f"chunk:{folder / 'base.pt'}"
    assert len(episodes) == 2
    for episode in episodes:
        assert not list(check_episode(episode))
        np.testing.assert_array_equal(episode.action, episode.action_base[:-1])
    capsys.readouterr()
    assert main(call) == 1
    assert capsys.readouterr().err.endswith("already holds an episode store; choose another path\n")


def test_it_learns_from_no_actions_that_moved_something_else(trained, tmp_path, capsys):
    folder, _ = trained
    with EpisodeStore.open(folder / "demos") as source, EpisodeStore.create(tmp_path / "others") as store:
        episode = source.read(source.ids()[0])
        told = episode.facts.actions
        assert told == "x 0.01 m, y 0.01 m, z 0.01 m, every 0.1 s"
        facts = episode.facts.updated(actions=told.replace("0.1 s", "0.05 s"))
        store.append(replace(episode, metadata=facts.metadata))
    train = ["base", "train", "reach", "--demos", str(tmp_path / "others"), "--out", str(tmp_path / "base.pt")]
    assert main([*train, *FEW]) == 1
    assert "every 0.05 s, and one of reach is x 0.01 m, y 0.01 m, z 0.01 m, every 0.1 s" in capsys.readouterr().err
    assert not (tmp_path / "base.pt").exists()


def test_episodes_that_do_not_fit_are_named(trained, tmp_path, capsys):
    demos = str(trained[0] / "demos")
    refused = {
        ("peg_insert",): f"{demos}: demonstration-0000 is of reach, not of peg_insert; name episodes of peg_insert",
        ("reach", "--obs", "pixels"): f"{demos}: demonstration-0000 lacks images/front, images/wrist, which the base",
        ("reach", "--kind", "run"): "base run: which run is not said; name its directory, run:DIR",
    }
    for call, named in refused.items():
        out = tmp_path / "base.pt"
        assert main(["base", "train", *call, "--demos", demos, "--out", str(out), *FEW]) == 1
        assert named in capsys.readouterr().err
        assert not out.exists()


def test_what_cannot_be_done_is_said_in_one_line(trained, capsys):
    folder, _ = trained
    base = str(folder / "base.pt")
    refused = {
        ("eval", "reach", "--base", "chunk"): "there is nothing to evaluate: name a base that can act",
        ("eval", "peg_insert", "--base", f"chunk:{base}"): "was trained with observations",
        ("eval", "reach", "--base", f"clone:{base}"): "is a base of kind chunk, not clone; use base.kind=chunk",
        ("train", "reach", "--kind", "scripted", "--demos", str(folder / "demos"), "--out", str(folder / "x.pt")): (
            "scripted is not trained from demonstrations"
        ),
        ("serve", "reach", "--base", "chunk"): "is not trained yet; `robot-rl base train` makes the file of one",
        ("serve", "reach", "--base", "scripted"): "there is no operator who could be asked here; choose another base",
        (
            "serve",
            "reach",
            "--base",
            f"chunk:{base}",
            "--host",
            "no.such.host.invalid",
        ): "choose another --host or --port",
        ("train", "reach", "--demos", str(folder / "gone"), "--out", str(folder / "x.pt")): "neither an episode store",
    }
    for call, said in refused.items():
        assert main(["base", *call]) == 1
        error = capsys.readouterr().err
        assert said in error
        assert error.strip().splitlines()[-1].startswith("robot-rl: ")


def test_a_base_that_is_served_acts_as_it_does_here_until_ctrl_c(trained, capsys):
    base = f"chunk:{trained[0] / 'base.pt'}"
    serving = start("base", "serve", "reach", "--base", base, "--port", "0", "--json")
    try:
        (address,) = re.findall(r"is served on (ws://127\.0\.0\.1:\d+); Ctrl-C ends it", serving.stderr.readline())
        results, identities = [], []
        for one in (base, f"server:{address}"):
            call = ["base", "eval", "reach", "--base", one, "--episodes", "2", "--seed", "100", "--json"]
            assert main(call) == 0
            answer = json.loads(capsys.readouterr().out)
            identities.append(answer.pop("identity"))
            results.append({key: value for key, value in answer.items() if key not in ("name", "wall_s", "timing")})
        assert results[0] == results[1]
    finally:
        serving.send_signal(signal.SIGINT)
        out, err = serving.communicate(timeout=60)
    answer = json.loads(out)
    assert (serving.returncode, answer["identity"]) == (0, identities[0]), err
    assert answer["plans"] > 2


def test_the_scripted_operator_is_evaluated_and_may_be_too_bad(capsys):
    call = ["base", "eval", "reach", "--base", "scripted", "--episodes", "2", "--seed", "100"]
    assert main([*call, "--min-success", "0.9"]) == 0
    assert "success 1.000 on 2 held-out resets" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("base", "kind", "path"),
    [("chunk", "chunk", ""), ("run:runs/one", "run", "runs/one"), ("server:ws://gpu:8000", "server", "ws://gpu:8000")],
)
def test_the_short_form_sets_kind_and_path(base, kind, path):
    settings = load_config(None, base_settings(base)).base
    assert (settings.kind, settings.path) == (kind, path)
    assert base_settings(None) == []
