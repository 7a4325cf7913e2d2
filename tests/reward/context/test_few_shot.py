"""Few-shot GVL: successes with their progress in the context of a query about progress."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from model_server import ModelServer, reply
from running import robot_rl
from scenes import FRAMES, stamped_episode, stamped_store

from robot_rl.config.labelling import BudgetConfig, ExamplesConfig, FramesConfig, LabelConfig
from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError
from robot_rl.reward.budget import Budget
from robot_rl.reward.context.examples import read_examples
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.vlm.make_backend import make_backend

SHOWN = 40
"""Number of the first episode of the store of examples."""


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """Four episodes of 10 steps, of which every other one succeeded."""
    path = tmp_path_factory.mktemp("demos") / "s"
    with EpisodeStore.create(path, {"task": "push"}) as store:
        for number in range(SHOWN, SHOWN + 4):
            store.append(stamped_episode(number, 10))
    return path


def test_what_a_person_called_a_failure_later_is_no_example(demos, tmp_path):
    path = Path(shutil.copytree(demos, tmp_path / "s"))
    label_episode(path, f"episode-{SHOWN}", False, "somebody")
    label_episode(path, f"episode-{SHOWN + 3}", True, "somebody")
    shown = read_examples(ExamplesConfig(store=str(path), count=2), FramesConfig(count=3))
    assert [one.episode_id for one in shown] == [f"episode-{SHOWN + 2}", f"episode-{SHOWN + 3}"]


def reads_it_off(request):
    """Each frame is as far as the example's frame of the same row, as its caption states."""
    captions = re.findall(r"Frame \d+, (\d+) percent done", request.words)
    stated = {stamp % FRAMES: int(p) for stamp, p in zip(request.stamps, captions, strict=False)}
    queried = request.stamps[len(captions) + 1 :]  # after the start
    rows = [{"frame": n, "seen": "", "percent": stated[stamp % FRAMES]} for n, stamp in enumerate(queried, 1)]
    return reply(json.dumps({"frames": rows, "unsure": False}))


def test_examples_stand_before_the_query_and_are_left_out_of_reports(demos, tmp_path):
    path = stamped_store(tmp_path / "s", 1, steps=10)
    flags = ("--kind", "progress", "--set", "task=push it", "--set", "frames.count=6")
    flags += ("--set", f"examples.store={demos}", "--set", "examples.count=2")
    with ModelServer(reads_it_off) as server:
        done = robot_rl("label", "run", path, "--url", server.url, *flags)
        assert done.returncode == 0, done.stderr
        (request,) = server.requests
    examples = [SHOWN * FRAMES, (SHOWN + 2) * FRAMES]  # the successes
    for first, group in zip(examples, (request.stamps[:6], request.stamps[6:12]), strict=True):
        assert sorted(group) == [first + row for row in range(0, 11, 2)]
        assert group != sorted(group), "in random order"
    assert request.words.index("100 percent done") < request.words.index("At the start of the attempt")
    with LabelStore(path) as labels:
        (label,) = labels.labels("progress")
        identity = labels.identity("progress")
    assert label.answer.values == pytest.approx(np.arange(0, 11, 2) / 10)
    assert labels_of(identity) == [f"episode-{SHOWN}", f"episode-{SHOWN + 2}"]


def labels_of(identity):
    assert list(identity["examples"]) == identity["trained_on"]
    return identity["trained_on"]


def test_the_order_of_an_example_is_the_same_each_time(demos):
    one, other = (read_examples(ExamplesConfig(str(demos), 2), FramesConfig(count=6)) for _ in range(2))
    for left, right in zip(one, other, strict=True):
        assert (left.frames == right.frames).all()
        assert left.progress.tolist() == right.progress.tolist()
    assert one[0].progress.tolist() != one[1].progress.tolist()


def test_too_few_successes_and_a_camera_that_is_not_there_are_named(demos):
    with pytest.raises(DataError, match=r"holds 2 successful episodes, examples\.count=3"):
        read_examples(ExamplesConfig(str(demos), 3), FramesConfig())
    with pytest.raises(DataError, match=r"has the cameras front; set frames\.camera"):
        read_examples(ExamplesConfig(str(demos), 1), FramesConfig(camera="top"))
    assert read_examples(ExamplesConfig(), FramesConfig()) == ()


@pytest.mark.parametrize(
    "changes", [{"kind": "success"}, {"answer": "logprobs"}, {"frames": FramesConfig(also=("a",))}]
)
def test_examples_are_for_written_progress(demos, changes):
    settings = {"kind": "progress", "examples": ExamplesConfig(str(demos), 1), **changes}
    with pytest.raises(ConfigError, match=r"examples\.count=1 is for kind=progress"):
        make_backend(LabelConfig(**settings), Budget(BudgetConfig()))
