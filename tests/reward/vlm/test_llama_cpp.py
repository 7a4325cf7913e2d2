"""Labels by a real llama.cpp server: its HTTP, JSON grammar, log-probabilities, pictures, with a model of our own."""

import contextlib
import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tagged

pytest.importorskip("xllamacpp", reason="needs a llama.cpp server: pip install xllamacpp gguf")
pytest.importorskip("gguf", reason="writes a model for it: pip install gguf")

from running import environment, robot_rl
from tiny_gguf import log_odds

from robot_rl.config.labelling import EndpointConfig, FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.units import Units
from robot_rl.reward.preference.pairs import combine_orders
from robot_rl.reward.vlm.make_backend import make_backend

RED, BLUE = (200, 30, 30), (30, 30, 200)
STEPS = 7
"""Of an episode; episode n turns red for its last n frames."""
EPISODES = 4


@contextlib.contextmanager
def serving(folder, *options):
    """The URL of a server."""
    folder.mkdir()
    command = [sys.executable, str(Path(__file__).with_name("llama_server.py")), str(folder), *options]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment()
        )
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http"), (folder / "log").read_text()
        yield url
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.stdout.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("llama") / "server") as found:
        yield found


@pytest.fixture
def path(tmp_path):
    with EpisodeStore.create(tmp_path / "s", {"task": "push"}) as store:
        for number in range(EPISODES):
            made = tagged.valid(number, STEPS)
            states = {key: column for key, column in made.observations.items() if not key.startswith("images/")}
            colours = [RED if row > STEPS - number else BLUE for row in range(STEPS + 1)]
            frames = np.stack([np.full((64, 64, 3), colour, np.uint8) for colour in colours])
            store.append(dataclasses.replace(made, observations={**states, "images/front": frames}))
    return tmp_path / "s"


def labelled(path, url, **settings):
    """The labels of all episodes, in their order."""
    config = LabelConfig(endpoint=EndpointConfig(url=url, attempts=1, concurrency=2), **settings)
    backend = make_backend(config, Budget(config.budget))
    with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
        units = Units(store, config, "make it red")
        labels.begin("x", units.kind, backend.identity, {})
        done = Labelling(labels, "x", backend).run(units)
        assert (done.queried + done.known, done.unanswered, done.stopped) == (len(units), 0, "")
        return sorted(labels.labels("x"), key=lambda one: str(one.subject))


def test_log_probabilities_are_those_that_the_models_numbers_give(path, url):
    for number, one in enumerate(labelled(path, url, answer="logprobs", frames=FramesConfig(count=STEPS + 1))):
        answer = one.answer
        expected = log_odds(red=number, blue=STEPS + 1 - number, tokens=answer.prompt_tokens)
        assert answer.details["log_odds"] == pytest.approx(expected, rel=0.02, abs=0.02)
        assert not answer.details["bounded"]
        assert answer.reply_tokens == 1


def test_a_structured_answer_keeps_to_the_form_and_says_what_was_seen(path, url):
    first, *others = (one.answer for one in labelled(path, url, frames=FramesConfig(count=1)))
    assert '"verdict":"failure"' in "".join(first.raw.split())
    assert (first.status, first.values) == (Status.OK, pytest.approx((0.05,)))
    assert [answer.values for answer in others] == [pytest.approx((0.95,))] * 3


def test_a_model_that_knows_no_order_contradicts_itself_and_that_is_a_tie(path, url):
    known = combine_orders(labelled(path, url, kind="preference", pairs=4))
    assert {pair.value for pair in known.pairs} == {0.5}
    assert known.flip_rate == 1.0


def test_the_doctor_finds_that_it_sees_or_that_it_is_blind(url, tmp_path):
    healthy = robot_rl("label", "doctor", "--url", url, "--set", "answer=logprobs")
    assert healthy.returncode == 0, healthy.stdout
    assert "a red picture is nearer to red than a blue one" in healthy.stdout
    with serving(tmp_path / "blind", "blind") as blind:
        ill = robot_rl("label", "doctor", "--url", blind)
    assert ill.returncode == 1
    assert "it takes no images like these; choose a model that sees" in ill.stdout
