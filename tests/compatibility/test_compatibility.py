"""What the revision before this one wrote is read, resumed, evaluated, inspected, exported and labelled by this one.

`artefacts/` was made by `make_artefacts.py` with the code of that revision.
"""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from running import learned, robot_rl

from robot_rl.config.resuming import RENAMED
from robot_rl.data.store.store import EpisodeStore
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.reward.classifier.classifier import read_classifier_file
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.vlm.head_backend import read_head

ARTEFACTS = Path(__file__).parent / "artefacts"
RESULTS = json.loads((ARTEFACTS / "results.json").read_text())
TASK = "move the tip of the tool to the green ball and keep it there"
RUNS = {"run": 60, "offline": 20, "labels": 12}
"""Environment steps of each run."""


@pytest.fixture
def folder(tmp_path):
    """A copy of the artefacts, with the empty folders of a store, which git does not keep, and paths into the copy."""
    copied = tmp_path / "artefacts"
    shutil.copytree(ARTEFACTS, copied)
    shutil.copy(copied / "progress_head.pt", copied / "labels")
    for store in ("store", "labelled", *(f"{run}/episodes" for run in RUNS)):
        (copied / store / "partial").mkdir(exist_ok=True)
    for file in copied.rglob("labels.sqlite"):
        with closing(sqlite3.connect(file)) as labels, labels:
            labels.execute(
                "UPDATE labeller SET settings = json_set(settings, '$.head', ?)", [f"{copied}/success_head.pt"]
            )
    return copied


def answer(*arguments, cwd=None):
    done = robot_rl(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ------------------------------------------------------------------ runs and checkpoints


@pytest.mark.parametrize("run", RUNS)
def test_a_run_is_inspected(folder, run):
    facts = answer("inspect", folder / run)
    summary = json.loads((ARTEFACTS / run / "summary.json").read_text())
    assert (facts["kind"], facts["task"], facts["finished"]) == ("run", "reach", True)
    assert facts["env_steps"] == facts["checkpoint"]["env_steps"] == RUNS[run]
    assert facts["checkpoint"]["updates"] == summary["updates"]
    assert facts["success_rate"] == summary["success_rate"]
    with EpisodeStore.open(folder / run / "episodes") as store:
        assert facts["store"]["episodes"] == len(store.summaries())


@pytest.mark.slow
@pytest.mark.parametrize("run", ["run", "offline"])
def test_the_policy_of_a_run_does_what_it_did(folder, run):
    results = answer("eval", folder / run, "--episodes", 3)["results"]
    assert len(results) == 3
    for now, before in zip(results, RESULTS[run], strict=True):
        assert {key: now[key] for key in ("success", "failure", "steps")} == {
            key: before[key] for key in ("success", "failure", "steps")
        }
        assert now["metrics"]["distance"] == pytest.approx(before["metrics"]["distance"], abs=1e-4)
        assert now["force_peak"] == pytest.approx(before["force_peak"], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_a_run_is_resumed_with_more_steps(folder, run):
    done = robot_rl("train", "reach", "--resume", "--out", run, "--steps", RUNS[run] + 12, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    checkpoint = load_checkpoint(folder / run / "checkpoint.pt")
    old = load_checkpoint(ARTEFACTS / run / "checkpoint.pt")
    assert checkpoint["env_steps"] == old["env_steps"] + 12
    updates = answer("inspect", folder / run)["checkpoint"]["updates"]
    assert updates > json.loads((ARTEFACTS / run / "summary.json").read_text())["updates"]
    after = learned(folder / run)
    before = {
        f"{name}.{key}": value
        for name, module in old["learner"]["sac"]["modules"].items()
        for key, value in module.items()
    }
    assert {key for key in after if not key.startswith("deployed.")} == before.keys()
    assert all(bool(torch.isfinite(value.float()).all()) for value in after.values())
    assert not all(torch.equal(before[key], after[key]) for key in before)
    with EpisodeStore.open(folder / run / "episodes") as now, EpisodeStore.open(ARTEFACTS / run / "episodes") as then:
        ids = [row.episode_id for row in now.summaries()]
        assert ids[: len(then.summaries())] == [row.episode_id for row in then.summaries()]
        assert len(ids) > len(then.summaries())


# ------------------------------------------------------------------ stores and labels


@pytest.mark.slow
@pytest.mark.parametrize("store", ["store", "labelled", "run/episodes", "labels/episodes"])
def test_a_store_is_verified(folder, store):
    done = robot_rl("data", "verify", folder / store)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("store", ["store", "labelled"])
def test_a_store_is_exported_to_lerobot_and_back(folder, store, tmp_path):
    pytest.importorskip("pyarrow")
    more = ("--task", "push", "--fps", 10) if store == "labelled" else ()
    done = robot_rl("data", "export", folder / store, "--out", tmp_path / "lerobot", "--format", "lerobot", *more)
    assert done.returncode == 0, done.stderr
    done = robot_rl("data", "import", tmp_path / "lerobot", "--out", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    with EpisodeStore.open(folder / store) as ours, EpisodeStore.open(tmp_path / "again") as theirs:
        for one, other in zip(ours.episodes(), theirs.episodes(), strict=True):
            for column in ("action", "reward", "source", "terminated"):
                np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
            for key, column in one.observations.items():
                np.testing.assert_array_equal(column[: len(one)], other.observations[key][: len(one)], err_msg=key)


@pytest.mark.slow
def test_demonstrations_start_a_new_run(folder):
    settings = ("--set", "sac.hidden_sizes=[8, 8]", "--set", "evaluation.video_episodes=0")
    small = ("--steps", 12, "--episodes", 1, "--set", "warmup_steps=4", *settings)
    made = answer("train", "reach", "--demos", folder / "store", "--out", folder / "new", *small)
    assert made["env_steps"] == 12


@pytest.mark.slow
def test_labels_are_read_and_nothing_is_labelled_twice(folder):
    with LabelStore(folder / "labelled") as labels:
        before = {name: [str(label) for label in labels.labels(name)] for name in ("success", "progress")}
    assert [len(rows) for rows in before.values()] == [4, 4]
    flags = ("--kind", "success", "--set", "backend=head", "--set", "head=success_head.pt", "--set", f"task={TASK}")
    done = answer("label", "run", "labelled", *flags, cwd=folder)
    assert (done["ok"], done["known"]) == (0, 4)
    report = robot_rl("label", "report", "labelled", "--name", "progress", cwd=folder)
    assert report.returncode == 0, report.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["success", "progress"])
def test_a_label_made_again_is_the_same(folder, kind):
    flags = ("--kind", kind, "--set", "backend=head", "--set", f"head={kind}_head.pt", "--name", "again", "--set")
    done = robot_rl("label", "run", "labelled", *flags, f"task={TASK}", cwd=folder)
    assert done.returncode == 0, done.stderr
    with LabelStore(folder / "labelled") as labels:
        then, now = ([label.answer.values for label in labels.labels(name)] for name in (kind, "again"))
    for before, after in zip(then, now, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-3)


# ------------------------------------------------------------------ classifier and heads


def test_a_classifier_and_heads_answer_as_they_did():
    features = torch.randn(6, 1280, generator=torch.Generator().manual_seed(0))
    classifier = read_classifier_file(ARTEFACTS / "classifier.pt").classifier
    logits = classifier.heads["front"].logits(features).mean(1)
    now = {
        "classifier": classifier.probability(logits.double().numpy()[:, None]),
        "success_head": read_head(ARTEFACTS / "success_head.pt").logits(features).mean(1),
        "progress_head": read_head(ARTEFACTS / "progress_head.pt")(features),
    }
    for name, values in RESULTS["values"].items():
        np.testing.assert_allclose(np.asarray(now[name].tolist()), values, rtol=1e-4, err_msg=name)


# ------------------------------------------------------------------ what has another name now


@pytest.mark.parametrize("command", ["record", "train", "report"])
def test_an_old_command_line_is_refused_with_the_new_one(command):
    done = robot_rl("reward", command, "reach", "--out", "x")
    assert done.returncode != 0
    assert f"robot-rl classifier {command}" in done.stderr


@pytest.mark.parametrize("renamed", RENAMED, ids=lambda one: f"{one.key}={one.value}")
def test_an_old_setting_is_refused_with_the_new_name(renamed, tmp_path):
    old = "1" if renamed.value is None else renamed.value
    section, _, key = renamed.key.rpartition(".")
    written = {key: old}
    for name in reversed(section.split(".") if section else []):
        written = {name: written}
    file = tmp_path / "old.yaml"
    file.write_text(yaml.safe_dump(written))
    for flags in (("--set", f"{renamed.key}={old}"), ("--config", file)):
        done = robot_rl("train", "reach", *flags, "--out", tmp_path / "run")
        assert done.returncode != 0
        assert renamed.new_key in done.stderr
        assert renamed.value is None or str(renamed.new_value) in done.stderr
        assert not (tmp_path / "run").exists()
