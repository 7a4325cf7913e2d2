"""The chain from a policy back to recorded episodes: it is followed by content, and each break is named."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from running import robot_rl

from robot_rl.data.store.edit import merge, split
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint
from robot_rl.run.lineage.fork import fork_run
from robot_rl.run.lineage.run_chain import trace
from robot_rl.run.lineage.source_run import SourceRun
from robot_rl.run.train import train


def breaks(link):
    return [text for one in link.all() for text in one.breaks]


def unchecked(link):
    return [text for one in link.all() for text in one.unchecked]


def kinds(link):
    return [one.kind for one in link.all()]


@pytest.fixture
def run(old, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(old, tmp_path / "run")


@pytest.fixture(scope="module")
def made(old, tmp_path_factory):
    """Demonstrations with rewards of a judge, and a run that learned from them."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(old / "episodes", folder / "raw")
    with EpisodeStore.open(folder / "raw") as raw, OverlayWriter(raw.path, "judge", {"model": "m"}) as writer:
        for name in raw.ids()[:2]:
            episode = raw.read(name)
            writer.write(episode, raw.fingerprint(name), np.zeros(len(episode), np.float32))
    config = replace(SourceRun.read(old).config, env_steps=30, demonstrations=2)
    train(config, folder / "run", resume=False, demos=folder / "raw", rewards="judge")
    return folder


@pytest.fixture
def chain(made, tmp_path):
    """Those demonstrations and that run, to be changed."""
    path = tmp_path / "made"
    shutil.move(made, path)  # the paths in them are absolute: the changed copy takes the place of the whole one
    shutil.copytree(path, made)
    yield made
    shutil.rmtree(made)
    shutil.move(path, made)


def test_a_run_goes_back_to_its_policy_checkpoint_and_episodes(old):
    link = trace(old)
    assert (breaks(link), unchecked(link)) == ([], [])
    assert kinds(link) == ["run", "policy", "checkpoint", "store"]
    policy = link.sources[0]
    assert policy.name == json.loads((old / "summary.json").read_text())["policy"]
    with EpisodeStore.open(old / "episodes") as store:
        assert load_checkpoint(old / "checkpoint.pt")["recorded"] == store.fingerprints()
        assert policy.sources[0].sources[0].facts["recorded_here"] == len(store)


def test_demonstrations_of_another_store_are_followed_with_their_rewards(chain):
    link = trace(chain / "run")
    assert (breaks(link), unchecked(link)) == ([], [])
    assert kinds(link) == ["run", "policy", "checkpoint", "store", "store", "overlay"]
    own, raw, overlay = list(link.all())[3:]
    assert own.facts["copied"] == [{"store": str(chain / "raw"), "episodes": 2, "rewards": ["judge"]}]
    assert raw.name == str(chain / "raw")
    assert (overlay.facts["episodes"], overlay.facts["provenance"]) == (2, {"model": "m"})
    one = trace(chain / "run", "demonstration-0001")
    assert [(link.kind, link.name) for link in one.all()] == [
        ("episode", "demonstration-0001"),
        ("episode", "demonstration-0001"),
        ("overlay", "judge"),
    ]
    assert one.sources[0].facts["store"] == str(chain / "raw")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: shutil.copy(p / "raw/episodes/000001.zarr.zip", p / "raw/episodes/000000.zarr.zip"), "both episode"),
        (lambda p: (p / "raw/episodes/000000.zarr.zip").unlink(), "copied from there, is gone"),
        (lambda p: shutil.rmtree(p / "raw/overlays"), "the rewards 'judge' of demonstration-0000, demonstration-0001"),
        (lambda p: (p / "run/episodes/episodes/000002.zarr.zip").unlink(), "which it learned from, is gone"),
        (lambda p: (p / "run/checkpoint.pt").write_bytes(b"x"), "not a checkpoint"),
        (lambda p: _change_policy(p / "run"), "summary.json: is about another policy"),
        (lambda p: _record_again(p / "run/episodes"), "is not what it learned from"),
        (lambda p: _record_again(p / "raw"), "is not what was copied from there"),
    ],
)
def test_a_break_is_named(chain, change, told):
    change(chain)
    assert any(told in text for text in breaks(trace(chain / "run"))), breaks(trace(chain / "run"))


def _change_policy(run):
    state = load_checkpoint(run / "checkpoint.pt")
    next(iter(state["deployed"]["policy"].values())).add_(1.0)
    save_checkpoint(run / "checkpoint.pt", state)


def _record_again(store):
    """Replace an episode by another one of the same id, as somebody would who hides a failure."""
    with EpisodeStore.open(store, write=True) as opened:
        name = opened.ids()[0]
        episode = opened.read(name)
        file = opened.path / "episodes" / "000000.zarr.zip"
        opened.set_aside([name], "to be replaced")
        opened.append(replace(episode, reward=episode.reward + np.float32(0.5)))
        (opened.path / "episodes" / f"{opened.summaries()[-1].position:06d}.zarr.zip").rename(file)


def test_what_was_moved_away_is_not_checked_and_said(chain, tmp_path):
    shutil.move(chain / "raw", tmp_path / "raw")
    link = trace(chain / "run")
    assert breaks(link) == []
    assert any("is not here any more" in text for text in unchecked(link))


def test_a_fork_goes_back_to_its_run(old, tmp_path):
    source = SourceRun.read(old, load_checkpoint(old / "checkpoint.pt.previous")["env_steps"])
    fork_run(source, source.config, tmp_path / "fork")
    train(source.config, tmp_path / "fork", resume=True)
    link = trace(tmp_path / "fork")
    assert (breaks(link), unchecked(link)) == ([], [])
    assert [one.name for one in link.all() if one.kind == "run"] == [str(tmp_path / "fork"), str(old)]


def test_another_run_in_the_place_of_the_first_is_a_break(run, tmp_path):
    source = SourceRun.read(run)
    fork_run(source, replace(source.config, env_steps=95), tmp_path / "fork")
    facts = json.loads((run / "provenance.json").read_text())
    facts["starts"][0]["started"] = "2020-01-01T00:00:00+00:00"
    (run / "provenance.json").write_text(json.dumps(facts))
    assert any("is another run than the one that it began from" in text for text in breaks(trace(tmp_path / "fork")))


def test_merged_and_split_stores_go_back_to_theirs(old, tmp_path):
    parts = tmp_path / "parts"
    split(old / "episodes", parts, {"a": 0.5, "b": 0.5}, seed=0)
    merge([parts / "a", parts / "b", old / "episodes"], tmp_path / "all", rename=True)
    link = trace(tmp_path / "all")
    assert (breaks(link), unchecked(link)) == ([], [])
    assert link.facts["recorded_here"] == 0
    assert sum(one.name == str(old / "episodes") for one in link.all()) == 3
    with EpisodeStore.open(tmp_path / "all") as store:
        for name in (store.ids()[0], store.ids()[-1]):
            assert list(trace(store.path, name).all())[-1].facts["store"] == str(old / "episodes")
    _record_again(tmp_path / "all")
    assert any("not as in the stores that this one was made of" in text for text in breaks(trace(tmp_path / "all")))


def test_neither_run_nor_store(tmp_path):
    with pytest.raises(DataError, match="neither an episode store"):
        trace(tmp_path)


@pytest.mark.slow
def test_on_the_command_line(old, run):
    done = robot_rl("data", "lineage", old)
    assert done.returncode == 0, done.stderr
    assert "breaks of the chain: 0" in done.stdout
    (run / "episodes/episodes/000002.zarr.zip").unlink()
    done = robot_rl("data", "lineage", run, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["breaks_in_all"] == 1
