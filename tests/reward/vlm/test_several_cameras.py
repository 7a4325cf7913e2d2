"""Several cameras, and short clips, in one query: what a server is shown, in which order and with which captions."""

import dataclasses
import json
import re

import numpy as np
import pytest
from model_server import ModelServer, reply, stamped
from running import robot_rl
from scenes import FRAMES, stamped_episode

from robot_rl.config.labelling import BudgetConfig, FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.labeller import labelled_views
from robot_rl.reward.labels.units import Units
from robot_rl.reward.query import Clip
from robot_rl.reward.vlm.make_backend import make_backend

WRIST = 2000
"""What the wrist camera shows is so much more than what the front camera does."""
STEPS = 9


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cameras") / "s"
    with EpisodeStore.create(folder, {"task": "push"}) as store:
        for number in range(2):
            episode = stamped_episode(number, STEPS)
            wrist = np.stack([stamped(WRIST + number * FRAMES + row) for row in range(STEPS + 1)])
            observations = {**episode.observations, "images/wrist": wrist}
            store.append(dataclasses.replace(episode, observations=observations))
    return folder


def answers(request):
    form = request.payload["response_format"]["json_schema"]["schema"]["properties"]
    if "closer" in form:
        return reply(json.dumps({"seen": "", "closer": "first"}))
    if "frames" in form:
        count = len(re.findall(r"Frame \d+, camera front", request.words))
        rows = [{"frame": n, "seen": "", "percent": 10 * n} for n in range(1, count + 1)]
        return reply(json.dumps({"frames": rows, "unsure": False}))
    return reply(json.dumps({"seen": "", "verdict": "success", "confidence": 90}))


def labelled(path, name, *flags, kind="success"):
    base = ("--set", "task=push it", "--set", "frames.camera=front", "--set", "endpoint.concurrency=1")
    with ModelServer(answers) as server:
        done = robot_rl("label", "run", path, "--kind", kind, "--url", server.url, "--name", name, *base, *flags)
        assert done.returncode == 0, done.stderr
        return server.requests


def test_each_moment_is_shown_by_both_cameras_with_a_caption(path):
    requests = labelled(path, "both", "--set", "frames.also=[wrist]", "--set", "frames.count=2")
    assert requests[0].stamps == [0, WRIST, STEPS, WRIST + STEPS]
    captions = ["Frame 1, camera front:", "Frame 1, camera wrist:", "Frame 2, camera front:", "Frame 2, camera wrist:"]
    places = [requests[0].words.index(caption) for caption in captions]
    assert places == sorted(places)
    with LabelStore(path) as labels:
        assert labels.identity("both")["also"] == ["wrist"]
        (subject, *_) = next(iter(labels.labels("both"))).subject
    assert subject["also"] == ["wrist"]
    assert [camera for camera, _ in labelled_views(path, "both")] == ["front", "wrist"], "a training records both"


def test_a_clip_is_the_last_steps_and_captions_can_have_the_step(path):
    flags = ("--set", "frames.span=4", "--set", "frames.count=3", "--set", "frames.captions=step")
    requests = labelled(path, "clip", *flags)
    assert requests[1].stamps == [FRAMES + 5, FRAMES + 7, FRAMES + 9]
    assert "Frame 2, step 7:" in requests[1].words
    with LabelStore(path) as labels:
        assert (labels.identity("clip")["span"], labels.identity("clip")["captions"]) == (4, "step")


def test_moments_of_a_pair_and_shuffled_frames_keep_their_views_together(path):
    pair = labelled(path, "pair", "--set", "frames.also=[wrist]", "--set", "pairs=1", kind="preference")[0].stamps
    assert [wrist - front for front, wrist in zip(pair[::2], pair[1::2], strict=True)] == [WRIST, WRIST]
    shuffled = labelled(path, "far", "--set", "frames.also=[wrist]", "--set", "frames.count=4", kind="progress")
    stamps = shuffled[0].stamps
    assert len(stamps) == 8
    assert [wrist - front for front, wrist in zip(stamps[::2], stamps[1::2], strict=True)] == [WRIST] * 4


def test_a_further_view_is_another_query_and_none_is_the_one_that_it_was():
    frames = np.zeros((2, 8, 8, 3), np.uint8)
    alone = Clip("e", "f", "front", (0, 1), frames)
    both = dataclasses.replace(alone, views={"wrist": frames})
    assert alone.digest() != both.digest()
    assert "also" not in alone.subject
    with pytest.raises(DataError, match="1 frames for rows"):
        dataclasses.replace(alone, views={"wrist": frames[:1]})
    with pytest.raises(DataError, match="frames of wrist are float64"):
        dataclasses.replace(alone, views={"wrist": frames.astype(float)})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"backend": "head", "head": "x", "frames": FramesConfig(also=("wrist",))}, "are for models that chat"),
        ({"kind": "progress", "frames": FramesConfig(span=4)}, r"frames\.span=4 is for kind=success"),
        ({"kind": "progress", "frames": FramesConfig(captions="step")}, "gives away the order"),
    ],
)
def test_what_cannot_be_shown_is_refused(settings, problem):
    with pytest.raises(ConfigError, match=problem):
        make_backend(LabelConfig(**settings), Budget(BudgetConfig()))


@pytest.mark.parametrize(
    ("also", "problem"),
    [(("front",), "not front again"), (("wrist", "wrist"), "each camera once"), (("top",), "has no camera 'top'")],
)
def test_a_camera_that_is_not_there_or_twice_is_refused(path, also, problem):
    settings = LabelConfig(frames=FramesConfig(camera="front", also=also))
    with EpisodeStore.open(path) as store, pytest.raises(DataError, match=problem):
        next(iter(Units(store, settings, "push it"))).query()
