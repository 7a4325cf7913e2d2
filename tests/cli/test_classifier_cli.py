"""`robot-rl classifier` as a user types it, on the smallest task: record, train, judge, and let it judge a training."""

import asyncio
import json
import signal
from dataclasses import replace

import numpy as np
import pytest
from browser import job
from judged_arm import judged_arm
from pages import page
from running import SMALL, robot_rl

from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.classifier.classifier import read_classifier_file
from robot_rl.reward.classifier.frames import DECEPTIVE, LabelledStore
from robot_rl.reward.validation.ground_truth import CLASSIFIER_SOURCE

pytestmark = pytest.mark.slow

TRAINING = {
    "demonstrations": 1,
    "warmup_steps": 20,
    "update_to_data": 1,
    "replay.batch_size": 16,
    "sac.hidden_sizes": [32, 32],
    "evaluation.curve_interval": 0,
    "env_steps": 100_000,  # far more than will be needed
    "reward.kind": "classifier",
    "reward.allow_unfit": "true",
    "reward.overrule_s": 1,
}
FEW = ("--positives", "30", "--negatives", "45", "--size", "64")
FEWER = ("--positives", "10", "--negatives", "15", "--size", "64")
QUICK = ("--looks", "0", "--json")
SHORT = ("--steps", "60", "--episodes", "1", "--set", "demonstrations=1", "--set", "evaluation.curve_interval=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("reward")
    for name, seed, wanted in (("frames", 0, FEW), ("others", 1, FEWER)):
        done = robot_rl("classifier", "record", "reach", "--out", path / name, *wanted, "--seed", seed, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["positives"] >= int(wanted[1])
        assert answer["negatives"] >= int(wanted[3])
    done = robot_rl("classifier", "train", path / "frames", "--out", path / "c.pt", *FEW, "--looks", "1")
    assert done.returncode == 0, done.stderr
    assert "robot-rl classifier report" in done.stdout
    return path


def cameras(folder):
    """The cameras that the classifier weighs: which ones help is decided by the data."""
    return read_classifier_file(folder / "c.pt").classifier.cameras


def judged(folder, *flags):
    settings = {"reward.kind": "classifier", "reward.path": folder / "c.pt"}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return robot_rl("train", "reach", *SMALL, *SHORT, *words, *flags)


def test_what_the_script_records_shows_success_and_near_misses(folder):
    labelled = list(LabelledStore(folder / "frames").episodes(2))
    assert all(set(one.episode.observations) >= {"images/front", "images/wrist"} for one in labelled)
    undone = [one for one in labelled if (np.diff(one.shows.astype(int)) < 0).any()]
    assert undone  # done, and then no longer
    assert not any(one.episode.terminated.any() and one.shows.any() for one in labelled)
    with EpisodeStore.open(folder / "frames") as store:
        assert [bool(row.success) for row in store.summaries()] == [bool(one.shows.any()) for one in labelled]


def test_a_training_is_judged_by_a_classifier_only_if_it_may(folder, tmp_path):
    refused = judged(folder, "--out", tmp_path / "run")
    assert refused.returncode == 1
    assert "has no report" in refused.stderr
    assert not (tmp_path / "run").exists()

    report = robot_rl("classifier", "report", folder / "c.pt", folder / "others", "--out", tmp_path / "page.png")
    assert (tmp_path / "page.png").exists(), report.stderr
    assert "ending episodes" in report.stdout.splitlines()[0]

    done = judged(folder, "--set", "reward.allow_unfit=true", "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert "task_success" in json.dumps(json.loads(done.stdout)) or json.loads(done.stdout)["success_rate"] == 0
    with EpisodeStore.open(tmp_path / "run" / "episodes") as store:
        episodes = list(store.episodes())
    assert {episode.reward_source for episode in episodes} == {"classifier"}
    assert {f"images/{name}" for name in cameras(folder)} <= set(episodes[0].observations)
    nobody = robot_rl("classifier", "train", tmp_path / "run", "--out", tmp_path / "again.pt")
    assert "0 episodes" in nobody.stderr  # it does not learn from itself
    again = robot_rl("eval", tmp_path / "run", "--episodes", "1", "--json")
    assert again.returncode == 0, again.stderr
    assert {"task_success", "classifier_probability"} <= json.loads(again.stdout)["results"][0]["metrics"].keys()


def test_what_cannot_be_is_said_at_once(folder, tmp_path):
    other = robot_rl("train", *SMALL, "--set", "reward.kind=classifier", "--out", tmp_path / "run", "cube_lift")
    assert "needs reward.path" in other.stderr
    path = f"reward.path={folder / 'c.pt'}"
    flags = ("--set", "reward.kind=classifier", "--set", "reward.allow_unfit=true", "--set", path)
    other = robot_rl("train", "cube_lift", *SMALL, *flags, "--out", tmp_path / "run")
    assert "trained for 'reach', not for 'cube_lift'" in other.stderr
    gate = robot_rl("classifier", "train", folder / "frames", "--out", tmp_path / "g.pt", "--gate", "height < 3")
    assert "expected state/<name>" in gate.stderr
    known = robot_rl("classifier", "report", folder / "c.pt", folder / "frames")
    assert "was trained on all" in known.stderr


# ------------------------------------------------------------------ a person who knows better


class Served:
    """What `page` has to know of a console."""

    def __init__(self, url):
        self.url = url.rstrip("/")


async def judge(url):
    """Overrules the classifier while it is asked, lets it have its way, and corrects that afterwards; the episodes."""
    async with page(Served(url)) as anna:
        await anna.take()
        overruled = None
        while overruled is None:  # on a busy machine a word may come too late for its episode
            state = await anna.hear("state", lambda m: m["question"] or any(r["overruled"] for r in m["ended"]))
            overruled = next((row["id"] for row in state["ended"] if row["overruled"]), None)
            if overruled is None:
                assert CLASSIFIER_SOURCE in state["question"]
                await anna.say(type="do", what="failure")
        of_classifier = lambda m: [r["id"] for r in m["ended"] if r["judge"] == CLASSIFIER_SOURCE]  # noqa: E731
        believed = of_classifier(await anna.hear("state", lambda m: len(of_classifier(m)) >= 2))
        await anna.say(type="label", episode=believed[0], success=False)
        await anna.hear("labelled")
        state = await anna.hear("state", lambda m: any(row["label"] for row in m["ended"]))
        assert [row["label"] for row in state["ended"] if row["id"] == believed[0]] == [
            {"success": False, "who": "Anna"}
        ]
        async with anna.session.get(f"{url}/episodes/{believed[0]}") as answer:
            assert (await answer.json())["label"]["success"] is False
        await anna.give_back()
        return overruled, believed[0]


def test_what_a_person_overrules_at_once_and_afterwards_trains_the_next_classifier(folder, tmp_path):
    run = tmp_path / "run"
    credulous = tmp_path / "credulous.pt"
    replace(read_classifier_file(folder / "c.pt").classifier, threshold=0.0).write(
        credulous
    )  # it takes everything for a success
    settings = TRAINING | {"reward.path": credulous}
    flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with job("train", "reach", "--console", "127.0.0.1:0", "--heartbeat", 5, "--out", run, *flags) as (process, url):
        at_once, afterwards = asyncio.run(judge(url.rstrip("/")))
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=120)
        assert process.returncode == 130, messages

    found = {one.episode.episode_id: one for one in LabelledStore(run).episodes(2)}
    assert found.keys() == {at_once, afterwards} | {
        n for n, one in found.items() if one.episode.reward_source == "operator"
    }
    for name in (at_once, afterwards):
        assert not found[name].shows.any()
        assert found[name].deceptive.sum() == min(DECEPTIVE, len(found[name].shows))
    with EpisodeStore.open(run / "episodes") as store:
        assert store.read(afterwards).reward[-1] == 1.0, "what was recorded stays"
        others = {store.fingerprint(name) for name in store.ids() if name not in found}
    assert others, "the classifier alone judged some"

    camera = [flag for name in cameras(folder) for flag in ("--camera", name)]
    done = robot_rl(
        "classifier", "train", folder / "frames", run, "--out", tmp_path / "better.pt", *FEW, *QUICK, *camera
    )
    assert done.returncode == 0, done.stderr
    learned = set(read_classifier_file(tmp_path / "better.pt").classifier.trained_on)
    assert {found[at_once].fingerprint, found[afterwards].fingerprint} <= learned
    assert not learned & others, "it does not learn from what only a classifier said"
    assert json.loads(done.stdout)["episodes"] == len(learned)


def test_the_old_name_of_the_group_fails_with_the_new_one():
    for command in (("reward", "train", "frames", "--out", "c.pt"), ("reward",)):
        old = robot_rl(*command)
        assert old.returncode == 2
        assert (
            f"`robot-rl {' '.join(command[:2])}` is `robot-rl {' '.join(('classifier', *command[1:2]))}` now"
            in old.stderr
        )


# ------------------------------------------------------------------ on an arm

CAMERAS = {"front": {"source": "pattern:", "width": 64, "height": 64}}
ROBOT = judged_arm(cell={"max_camera_age": 2.0}, cameras=CAMERAS, task={"cameras": ["front"]})


async def label_frames(url):
    """Leads an arm, and says that it is done, and that it is not, until there are enough frames."""
    async with page(Served(url)) as anna:
        await anna.take()
        for name in ("start", "success", "failure", "stop"):
            await anna.hear("state", lambda m, name=name: name in m["phase"]["requests"])
            await anna.say(type="do", what=name)
            await asyncio.sleep(1.0)
        await anna.give_back()


def test_a_person_labels_frames_on_an_arm(tmp_path):
    (tmp_path / "robot.yaml").write_text(ROBOT)
    flags = ("--robot", tmp_path / "robot.yaml", "--out", tmp_path / "frames", "--positives", "2", "--negatives", "4")
    alone = robot_rl("classifier", "record", "plug", *flags)
    assert alone.returncode == 2
    assert "--robot needs a person who leads" in alone.stderr
    console = ("--console", "127.0.0.1:0", "--heartbeat", 5)
    with job("classifier", "record", "plug", *flags, *console) as (process, url):
        asyncio.run(label_frames(url))
        told, messages = process.communicate(timeout=120)
        assert process.returncode == 0, messages
    assert "robot-rl classifier train" in told
    (one,) = LabelledStore(tmp_path / "frames").episodes(0)
    assert one.shows.any() and not one.shows.all()
    assert list(one.episode.observations) and "images/front" in one.episode.observations
