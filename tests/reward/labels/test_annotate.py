"""A labeller at work on a real store with a real server."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from model_server import Fault, ModelServer, prefers_larger, refusal, reply, says_success
from raw_server import RawServer
from scenes import FRAMES, stamped_episode, stamped_store

from robot_rl.config.labelling import BudgetConfig, EndpointConfig, FramesConfig, LabelConfig, ScoreConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError, EndpointError, ValuelessAnswersError
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.annotate_new import StoreLabelling
from robot_rl.reward.labels.hack_monitor import HackWatch
from robot_rl.reward.labels.labeller import read_labeller
from robot_rl.reward.labels.units import Units
from robot_rl.reward.vlm.make_backend import make_backend


def config(server, *, budget=None, endpoint=None, **settings):
    settings = {"frames": FramesConfig(count=3), "pairs": 12} | settings
    one = EndpointConfig(url=server.url, backoff_s=0.01, attempts=2, key_variable="NO_KEY", **(endpoint or {}))
    return LabelConfig(endpoint=one, budget=budget or BudgetConfig(), **settings)


def label(path, settings, name="labels"):
    """One run of the labeller; the progress and the labels that there are then."""
    with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
        backend = make_backend(settings, Budget(settings.budget))
        units = Units(store, settings, "push it")
        labels.begin(name, units.kind, backend.identity, {})
        try:
            done = Labelling(labels, name, backend).run(units)
        finally:
            backend.close()
        return done, list(labels.labels(name))


def test_every_episode_is_shown_and_its_label_is_its_own(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(says_success) as server:
        done, labels = label(path, config(server))
    assert (done.queried, done.known, done.stopped) == (6, 0, "")
    for one in labels:
        (clip,) = one.subject
        number = int(clip["episode_id"].removeprefix("episode-"))
        last = number * FRAMES + 9 + number
        assert clip["rows"] == [0, round((9 + number) / 2), 9 + number]
        assert one.answer.values == pytest.approx((0.1 if last % 2 else 0.9,))
        assert f"number {last}" in one.answer.raw
    assert all("push it" in request.words for request in server.requests)


def test_nothing_is_asked_twice(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(says_success) as server:
        label(path, config(server))
        done, labels = label(path, config(server))
        assert (done.queried, done.known, len(labels), len(server.requests)) == (0, 6, 6, 6)
        done, _ = label(path, config(server), name="again")  # the same question under another name
        assert (done.queried, done.known, len(server.requests)) == (0, 6, 6)
        with EpisodeStore.open(path, write=True) as store:
            store.append(stamped_episode(7))
        done, _ = label(path, config(server))
        assert (done.queried, done.known, len(server.requests)) == (1, 6, 7)


def test_what_is_found_again_beside_a_recording_is_no_new_expense(tmp_path):
    path, found = stamped_store(tmp_path / "s"), [HackWatch(None), HackWatch(None)]
    with ModelServer(says_success) as server, LabelStore(path, create=True) as labels:
        settings = config(server, endpoint={"price_prompt": 1e6})
        backend = make_backend(settings, Budget(settings.budget))
        for name, one in zip(("first", "again"), found, strict=True):
            done = StoreLabelling(path, settings, "push it", labels, name, backend, on_label=one.add).round()
            one.query_s += done.seconds
        backend.close()
    first, again = (one.summary() for one in found)
    assert (first["queried"], first["cache_hits"], first["cost"]) == (6, 0, 600.0)
    assert first["labels_per_s"] > 0
    assert (again["queried"], again["cache_hits"], again["cost"], again["labels_per_s"]) == (0, 6, 0.0, None)
    assert len(server.requests) == 6


def test_a_training_finds_the_files_of_who_labelled_beside_a_recording_in_another_folder(tmp_path, monkeypatch):
    path = stamped_store(tmp_path / "s")
    text = 'name: mine\nversion: 1\ntext: \'Is {task} done? {frames} {{"seen", "verdict", "confidence"}}\'\n'
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with ModelServer(says_success) as server:
        settings = config(server, prompt="mine.yaml")
        backend = make_backend(settings, Budget(settings.budget))
        with LabelStore(path, create=True) as labels:
            StoreLabelling(path, settings, "push it", labels, "watched", backend, on_label=HackWatch(None).add).round()
        backend.close()
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        kept = read_labeller(path, "watched", allowed=True).config
        make_backend(kept, Budget(kept.budget)).close()
    assert kept.prompt == str(tmp_path / "mine.yaml")


def test_another_model_prompt_or_size_is_another_question(tmp_path):
    path = stamped_store(tmp_path / "s", 1)
    with ModelServer(says_success) as server:
        label(path, config(server), "a")
        label(path, config(server, endpoint={"revision": "2"}), "b")
        label(path, config(server, frames=FramesConfig(count=3, longest_side=32)), "c")
        label(path, config(server, frames=FramesConfig(count=2)), "d")
        assert len(server.requests) == 4
    assert max(server.requests[2].images[0].shape) == 32


def test_progress_shows_later_frames_in_random_order_and_puts_answers_back(tmp_path):
    path = stamped_store(tmp_path / "s", 3)

    def answer(request):
        start, *later = request.stamps
        rows = [{"frame": n, "seen": "", "percent": 2 * (stamp - start)} for n, stamp in enumerate(later, 1)]
        return reply(json.dumps({"frames": rows, "unsure": False}))

    with ModelServer(answer) as server:
        _, labels = label(path, config(server, kind="progress", frames=FramesConfig(count=8)))
    for one in labels:
        assert one.answer.values == pytest.approx([row / 50 for row in one.subject[0]["rows"]])
    shown = [request.stamps for request in server.requests]
    assert all(stamps[0] == min(stamps) for stamps in shown)
    assert any(stamps != sorted(stamps) for stamps in shown)


def test_pairs_are_asked_in_both_orders(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(prefers_larger) as server:
        done, labels = label(path, config(server, kind="preference", pairs=10))
    assert done.queried + done.known == 20
    by_subject = {json.dumps(one.subject): one for one in labels}
    for one in labels:
        a, b = one.subject
        stamps = [int(c["episode_id"].removeprefix("episode-")) * FRAMES + c["rows"][0] for c in (a, b)]
        assert one.answer.values == (1.0 if stamps[0] > stamps[1] else 0.0,)
        twin = by_subject[json.dumps([b, a])]
        assert twin.answer.values[0] == 1.0 - one.answer.values[0]


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0.0, 0.4), (0.5, 0.4, 0.8), (1.0, 1.0, 1.0)])
def test_of_the_moments_of_pairs_the_share_that_is_asked_for_are_ends_of_episodes(share, least, most, tmp_path):
    path = stamped_store(tmp_path / "s")
    with EpisodeStore.open(path) as store:
        last = {row.episode_id: row.length for row in store.summaries()}
        units = list(Units(store, LabelConfig(kind="preference", pairs=100, pair_ends=share), "push it"))
    clips = [clip for unit in units for clip in json.loads(unit.subject)]
    assert all(json.loads(unit.subject)[0] != json.loads(unit.subject)[1] for unit in units)
    assert least <= np.mean([clip["rows"] == [last[clip["episode_id"]]] for clip in clips]) <= most


def test_pairs_of_one_episode_are_any_of_its_moments(tmp_path):
    with EpisodeStore.open(stamped_store(tmp_path / "s", 1)) as store:
        units = list(Units(store, LabelConfig(kind="preference", pairs=5, pair_ends=1.0), "push it"))
    assert len(units) == 10


def test_log_probabilities_become_a_probability(tmp_path):
    path = stamped_store(tmp_path / "s", 1)
    with ModelServer(lambda _: reply("True", top={"True": -0.5, "False": -1.5})) as server:
        _, (one,) = label(path, config(server, answer="logprobs"))
    assert one.answer.values == pytest.approx((0.7310586,))
    assert one.answer.details["log_odds"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (reply("I think it went well."), Status.UNPARSABLE),
        (reply('{"seen": "x", "verdict": "succ'), Status.UNPARSABLE),
        (reply(None, refusal="no"), Status.REFUSED),
        (reply('{"seen": "x", "verdict": "unsure", "confidence": 50}'), Status.UNSURE),
    ],
)
def test_what_is_no_answer_is_kept_and_is_no_value(tmp_path, body, status):
    path = stamped_store(tmp_path / "s", 2)
    with ModelServer(lambda _: body) as server:
        done, labels = label(path, config(server))
        assert [one.answer.status for one in labels] == [status] * 2
        assert all(one.answer.values == () for one in labels)
        assert done.statuses[status] == 2
        label(path, config(server))
        assert len(server.requests) == 2


def test_the_budget_stops_hard_and_the_next_run_goes_on(tmp_path):
    path = stamped_store(tmp_path / "s")
    with ModelServer(says_success) as server:
        done, labels = label(path, config(server, budget=BudgetConfig(calls=4)))
        assert (done.queried, len(labels), len(server.requests)) == (4, 4, 4)
        assert "calls: 4 of 4 used" in done.stopped
        done, labels = label(path, config(server))
        assert (done.queried, done.known, len(labels), len(server.requests), done.stopped) == (2, 4, 6, 6, "")


def test_no_more_at_a_time_than_configured(tmp_path):
    path = stamped_store(tmp_path / "s", 8)
    with ModelServer(says_success) as server:
        label(path, config(server, endpoint={"concurrency": 3}))
        assert 1 <= server.most_at_a_time <= 3


def test_a_silent_server_is_given_up_and_asked_by_the_next_run(tmp_path):
    path = stamped_store(tmp_path / "s", 12)
    with ModelServer(says_success, faults=[Fault(500)] * 1000) as server:
        done, labels = label(path, config(server))
        assert "queries in a row were not answered" in done.stopped
        assert not labels
        server.faults.clear()
        done, labels = label(path, config(server))
        assert (done.queried, len(labels)) == (12, 12)


def test_an_error_for_all_keeps_what_was_answered(tmp_path):
    path = stamped_store(tmp_path / "s", 6)
    with ModelServer(says_success) as server:
        answered = iter(range(100))
        settings = config(server, endpoint={"concurrency": 1})

        def answer(request):
            return says_success(request) if next(answered) < 3 else {"no": "choices"}

        server.answer = answer
        with pytest.raises(EndpointError, match="not as OpenAI-compatible"):
            label(path, settings)
    with LabelStore(path) as labels:
        assert len(list(labels.labels("labels"))) == 3


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (reply("I think it went well."), "it holds no JSON object"),
        (reply(None, refusal="no"), "the model, or the server's filter, declined to answer"),
    ],
)
def test_answers_that_never_have_a_value_end_the_run_with_the_reason(tmp_path, body, reason):
    """12 of 12 of them were a success of the command, without a reason."""
    path = stamped_store(tmp_path / "s", 14)
    with ModelServer(lambda _: body) as server:
        done, labels = label(path, config(server, endpoint={"concurrency": 1}))
        assert (done.queried, len(labels), len(server.requests)) == (10, 10, 10)
        assert f"10 answers in a row have no value, most of them because: {reason}" in done.stopped
        assert done.summary()["reasons"] == {reason: 10}


def test_an_answer_with_a_value_or_an_unsure_one_begins_the_count_anew(tmp_path):
    path, count = stamped_store(tmp_path / "s", 24), itertools.count(1)
    bodies = [reply("hm"), reply('{"seen": "x", "verdict": "unsure", "confidence": 50}')]
    with ModelServer(lambda _: bodies[next(count) % 9 == 0]) as server:
        done, _ = label(path, config(server, endpoint={"concurrency": 1}))
    assert (done.queried, done.stopped, done.statuses["unsure"]) == (24, "", 2)


def test_beside_a_recording_answers_without_a_value_are_counted_over_the_rounds(tmp_path):
    path = stamped_store(tmp_path / "s", 1)
    with ModelServer(lambda _: reply("hm")) as server, LabelStore(path, create=True) as labels:
        settings = config(server)
        backend = make_backend(settings, Budget(settings.budget))
        work = StoreLabelling(path, settings, "push it", labels, "x", backend, on_label=lambda *_: None)
        with pytest.raises(ValuelessAnswersError, match="it holds no JSON object; `robot-rl label doctor`"):
            for number in range(1, 14):
                work.round()
                with EpisodeStore.open(path, write=True) as store:
                    store.append(stamped_episode(number))
        backend.close()
        assert len(server.requests) == 10


def test_a_server_that_requests_a_long_wait_ends_the_run_at_once(tmp_path):
    path = stamped_store(tmp_path / "s", 12)
    with ModelServer(says_success, faults=[refusal(429, "quota", Retry_After="3600")]) as server:
        done, _ = label(path, config(server, endpoint={"concurrency": 1}))
        assert "requests a wait of 3600 s" in done.stopped
        assert "HTTP 429: quota" in done.stopped
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kind": "progress", "frames": FramesConfig(count=1)}, "frames.count=1 shows no progress"),
        ({"kind": "score"}, "has no answers for kind=score"),
        ({"budget": BudgetConfig(money=1.0)}, "limits nothing without prices"),
        ({"backend": "clip", "kind": "score", "budget": BudgetConfig(money=1.0)}, "has no price"),
        ({"backend": "clip", "kind": "score", "score": ScoreConfig(goal_images=("no.png",))}, "cannot read no.png"),
        ({"prompt": "no.yaml"}, "cannot read prompt"),
        ({"kind": "preference", "answer": "logprobs"}, "cannot be combined"),
    ],
)
def test_wrong_settings_are_refused_before_the_first_connection(settings, reason):
    with RawServer([]) as server:
        with pytest.raises(ConfigError, match=reason):
            make_backend(config(server, **settings), Budget(settings.get("budget", BudgetConfig())))
        assert server.connections == 0


def test_cost_is_counted(tmp_path):
    path = stamped_store(tmp_path / "s", 2)
    with ModelServer(lambda _: reply("{}", tokens=(1000, 100))) as server:
        done, labels = label(path, config(server, endpoint={"price_prompt": 2.0, "price_reply": 10.0}))
    assert done.cost == pytest.approx(2 * (1000 * 2 + 100 * 10) / 1e6)
    assert labels[0].answer.cost == pytest.approx(0.003)
    assert done.prompt_tokens == 2000


def test_an_episode_without_frames_or_with_other_cameras_is_an_error(tmp_path):
    path = stamped_store(tmp_path / "s", 1)
    with ModelServer(says_success) as server:
        with pytest.raises(DataError, match=r"has no camera 'wrist'; set frames.camera to one of front"):
            label(path, config(server, frames=FramesConfig(camera="wrist")))
        with EpisodeStore.create(tmp_path / "blind", {}) as store:
            made = stamped_episode(0)
            blind = {key: value for key, value in made.observations.items() if key.startswith("state/")}
            store.append(dataclasses.replace(made, observations=blind))
        with pytest.raises(DataError, match="has no frames; record it with cameras"):
            label(tmp_path / "blind", config(server))
        EpisodeStore.create(tmp_path / "none", {}).close()
        with pytest.raises(DataError, match="holds no episodes"):
            label(tmp_path / "none", config(server))
        assert not server.requests
