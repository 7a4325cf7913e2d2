"""Scores with any alpha, from labels of one; and what `label alpha` and `label apply` make of them."""

import json

import numpy as np
import pytest
import torch
from running import robot_rl
from scenes import stamped_store

from robot_rl.data.store.reward_overlays import read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.answer import ALONG, OFFSET, Answer, Status
from robot_rl.reward.label_store import Label, LabelStore
from robot_rl.reward.labels.alpha_curve import ALPHAS, alpha_curve, reward_of_offsets
from robot_rl.reward.query import QueryKind, canonical
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.reward.vlm.clip_backend import goal_baseline_reward, offsets_from_goal


def unit(count, seed):
    return torch.nn.functional.normalize(torch.randn(count, 8, generator=torch.Generator().manual_seed(seed)), dim=-1)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_reward_of_any_alpha_follows_from_two_numbers(alpha):
    images, (goal, baseline) = unit(20, 0), unit(2, 1)
    whole, along = (part.numpy() for part in offsets_from_goal(images, goal, baseline))
    expected = goal_baseline_reward(images, goal, baseline, alpha).numpy()
    assert reward_of_offsets(whole, along, alpha) == pytest.approx(expected, abs=1e-6)


def score(name, whole, along, fingerprint="f"):
    details = {OFFSET: [1.0, whole], ALONG: [0.5, along]}
    clip = {"episode_id": name, "fingerprint": fingerprint, "camera": "front", "rows": [0, 9]}
    return Label("k", (clip,), Answer(Status.OK, (0.5, 1 - 0.5 * whole), details=details), "")


def test_a_baseline_that_helps_and_one_that_turns_the_score_over():
    """What lies off the line is noise, so a larger alpha separates better; or the other way round."""
    rng = np.random.default_rng(0)
    good = np.arange(40) % 2 == 0
    along = np.where(good, 0.1, 0.3) + rng.uniform(0, 0.1, 40)
    whole = along + rng.uniform(0, 1.0, 40)
    truth = {f"e{n}": GroundTruth(bool(value)) for n, value in enumerate(good)}
    helps = alpha_curve([score(f"e{n}", whole[n], along[n]) for n in range(40)], truth)
    assert (helps.episodes, helps.successes, helps.worse) == (40, 20, [])
    assert helps.points[-1].auc.value == 1.0 > helps.points[0].auc.value
    assert helps.points[-1].distance < helps.points[0].distance
    off = [score(f"e{n}", 0.5 - along[n] + whole[n], 0.5 - along[n]) for n in range(40)]
    turned = alpha_curve(off, truth)
    assert turned.points[-1].auc.value == 0.0
    assert 1.0 in turned.worse
    assert turned.points[-1].distance > 0.9


def test_a_curve_needs_a_baseline_and_both_outcomes():
    truth = {"a": GroundTruth(True), "b": GroundTruth(False)}
    bare = Label("k", ({"episode_id": "a", "rows": [0]},), Answer(Status.OK, (0.5,)), "")
    with pytest.raises(DataError, match=r"without a baseline.*set score\.baselines"):
        alpha_curve([bare], truth)
    with pytest.raises(DataError, match="1 successes and 0 failures"):
        alpha_curve([score("a", 1.0, 0.5)], truth)


@pytest.fixture
def scored(tmp_path):
    """A store with scores, as `label run --kind score` leaves them: successes are nearer to the goal."""
    path = stamped_store(tmp_path / "s", 6)
    identity = {"backend": "clip", "model": "tiny", "alpha": 0.5}
    with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
        labels.begin("score", QueryKind.SCORE, identity, {})
        for row in store.summaries():
            made = score(row.episode_id, 0.4 if row.success else 0.9, 0.2, store.fingerprint(row.episode_id))
            labels.add("score", canonical(list(made.subject)), row.episode_id, made.answer, identity)
    return path


@pytest.mark.slow
def test_the_commands_draw_the_curve_and_write_rewards(scored):
    done = robot_rl("label", "alpha", scored, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["episodes"], len(told["points"]), told["points"][0]["auc"]["value"]) == (6, 11, 1.0)
    assert (scored / "labels" / "score.alpha.png").read_bytes().startswith(b"\x89PNG")
    apply = ("label", "apply", scored, "--name", "score")
    refused = robot_rl(*apply, "--rewards", "bare", "--as", "reward")
    assert refused.returncode != 0
    assert "no end of the task" in refused.stderr
    assert "Traceback" not in refused.stderr
    for flags, words in (
        ((), "a similarity that shapes"),
        (("--as", "reward", "--allow-uncalibrated"), "NOT SHOWN to be fit"),
    ):
        done = robot_rl(*apply, "--rewards", f"new{len(flags)}", *flags)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
    with EpisodeStore.open(scored) as store:
        found = read_overlay(store.path, "new3", store.fingerprint(store.ids()[0]))
    assert found.provenance["used_as"] == "reward"
    assert found.provenance["certified"] is False
