"""A person at the console from beginning to end, in a real browser: what they did is what the store holds."""

import json
import signal

import numpy as np
import pytest
from browser import Person, answer, chromium, job

from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.system.checked_json import read_rows
from robot_rl.viz.demo_coverage import base_path

pytestmark = pytest.mark.slow

CALM = ("--heartbeat", 5)
"""This machine may be so busy that the browser itself is silent for long; what silence does is tested elsewhere."""


def test_five_demonstrations_by_keyboard_gamepad_and_pad(tmp_path):
    store = tmp_path / "demos"
    with (
        chromium() as page,
        job("demo", "reach", "--console", "127.0.0.1:0", *CALM, "--episodes", 5, "--out", store, "--json") as (
            process,
            url,
        ),
    ):
        anna = Person(page, url)
        anna.take_control()

        def begin():
            anna.until_button("start")
            anna.press("Enter")
            page.wait_for_selector("text=Recording starts when you move")

        begin()  # 0: keyboard, away from the camera; the person says it is a success
        with anna.holding("w"):
            anna.until_moved(6)
        anna.press("y")

        begin()  # 1: gamepad, to the left
        anna.gamepad(axes=(-1, 0, 0, 0))
        anna.until_moved(6)
        anna.gamepad(pressed=[0])
        anna.until_button("start")
        anna.gamepad()

        begin()  # 2: keyboard, towards the camera; the person says it is a failure
        with anna.holding("s"):
            anna.until_moved(6)
        anna.press("n")

        begin()  # discarded while it runs
        with anna.holding("e"):
            anna.until_moved(3)
            anna.press("x")

        begin()  # stopped in an emergency
        with anna.holding("e"):
            anna.until_moved(3)
            anna.press("Escape")
            anna.until_title("Emergency stop")
        page.click("#help-open")  # what is read is not in the way of a stop, nor of its release
        page.click("#estop")
        anna.until_title("Held")
        anna.press("Escape")
        anna.until_title("Emergency stop")
        anna.until("the list of keys is closed", "!document.querySelector('#help').open")
        page.click("#estop")
        anna.until_title("Held")
        anna.press("Enter")

        begin()  # 3: keyboard, up
        with anna.holding("e"):
            anna.until_moved(6)
        anna.press("y")

        begin()  # 4: the pad on the page, to the right
        pad = page.locator("#pad-xy").bounding_box()
        page.mouse.move(pad["x"] + pad["width"] / 2, pad["y"] + pad["height"] / 2)
        page.mouse.down()
        page.mouse.move(pad["x"] + 0.95 * pad["width"], pad["y"] + pad["height"] / 2)
        anna.until_moved(6)
        anna.press("y")
        page.mouse.up()

        anna.until_title("Complete")
        anna.press("Enter")
        facts = answer(process)
        assert anna.errors == []

    assert (facts["episodes"], facts["success_rate"]) == (5, 0.8)
    assert (store / "coverage.png").stat().st_size > 10_000
    # Axis of the base, and which way: the front camera faces the robot, and the hands move as its picture shows it.
    directions = {0: (0, -1), 1: (1, -1), 2: (0, 1), 3: (2, 1), 4: (1, 1)}
    with EpisodeStore.open(store) as recorded:
        assert recorded.ids() == [f"demonstration-{number:04d}" for number in range(5)]
        for number, episode in enumerate(recorded.episodes()):
            success = number != 2
            assert (episode.metadata["success"], episode.reward_source) == (success, "operator")
            assert episode.metadata["failure"] == (None if success else "operator")
            assert (episode.reward[-1], episode.terminated[-1]) == (float(success), True)
            assert set(episode.source.tolist()) <= {Source.HUMAN, Source.HOLD}
            assert episode.source[0] == Source.HUMAN, "recording starts with the first movement"
            assert not episode.action_policy.any()
            way = np.diff(base_path(episode)[[0, -1]], axis=0)[0]
            axis, sign = directions[number]
            assert np.argmax(np.abs(way)) == axis
            assert np.sign(way[axis]) == sign
    reasons = [json.loads(path.read_text())["reason"] for path in sorted((store / "aside").glob("*/reason.json"))]
    assert ["discard" in reasons[0], "emergency stop by Anna" in reasons[1], len(reasons)] == [True, True, 2]
    done = [row.get("what", row["kind"]) for row in read_rows(store / "operator.jsonl")]
    stopped = ["start", "e-stop", "release e-stop", "e-stop", "release e-stop", "resume"]
    kept = ["start", "success"]
    assert (
        done
        == [
            "took control",
            *kept,
            *kept,
            "start",
            "failure",
            "start",
            "discard",
            *stopped,
            *kept,
            *kept,
            "finish",
            "lost",
        ][: len(done)]
    )  # whether the page or the console goes first at the end, nobody knows
    assert len(done) >= 17


def test_interventions_judgement_and_an_emergency_stop_during_a_training(tmp_path):
    run = tmp_path / "run"
    small = ("--set", "demonstrations=2", "--set", "warmup_steps=20", "--set", "update_to_data=1")
    small += ("--set", "replay.batch_size=16", "--set", "sac.hidden_sizes=[32, 32]")
    small += ("--set", "evaluation.curve_interval=0", "--steps", 5000)  # more than will be needed
    with (
        chromium() as page,
        job("train", "reach", "--console", "127.0.0.1:0", *CALM, "--out", run, "--json", *small) as (process, url),
    ):
        anna = Person(page, url)
        anna.take_control()
        anna.until_title("Policy")
        with anna.holding("w"):
            anna.until_title("You lead")
            anna.until_moved(4)
        page.click("#reasons >> text=wrong way")
        anna.until_title("Policy")
        anna.press("y")
        anna.until("the success is listed", "document.querySelector('.mark.success')")
        listed = page.inner_text("#episodes .episode:first-child p")
        anna.press("z")  # on second thoughts
        page.wait_for_selector(f".episode:has-text('{listed}') p:has-text('Anna: it was a')")
        page.wait_for_selector(f"[aria-label='{listed} was a success'], [aria-label='{listed} was a failure']")
        anna.until_title("Policy")
        anna.press("Escape")
        anna.until_title("Emergency stop")
        page.click("#estop")
        anna.until_title("Held")
        anna.press("Enter")
        anna.until_title("Policy")
        page.wait_for_selector("[data-name='Value, by the critics'] b")
        anna.press("t")  # gives control back: the policy goes on alone
        anna.until("nobody is in control", "document.querySelector('#owner').textContent === 'Nobody is in control'")
        anna.until_moved(2)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=120)
        assert process.returncode == 130, messages
        assert anna.errors == []

    with EpisodeStore.open(run / "episodes") as store:
        online = [episode for episode in store.episodes() if not episode.metadata["demonstration"]]
        demonstrations = [episode for episode in store.episodes() if episode.metadata["demonstration"]]
    assert all(set(episode.source.tolist()) == {Source.SCRIPT} for episode in demonstrations)
    human = [episode for episode in online if Source.HUMAN in episode.source]
    assert len(human) == 1
    led = np.flatnonzero(human[0].source == Source.HUMAN)
    assert len(led) >= 3
    assert np.array_equal(led, np.arange(led[0], led[-1] + 1)), "one intervention, without gaps"
    policy = human[0].source == Source.POLICY
    assert np.abs(human[0].action - human[0].action_policy)[led].max() > 0.1, "both actions are kept"
    assert policy[: led[0]].all()
    records = read_metrics(run / "metrics.jsonl", "episode")
    counted = sum(record["intervention_steps"] for record in records)
    assert counted == sum(int((episode.source == Source.HUMAN).sum()) for episode in online)

    assert (run / "interventions.png").stat().st_size > 10_000
    judged = [episode for episode in online if episode.reward_source == "operator"]
    assert [(episode.reward[-1], episode.terminated[-1]) for episode in judged] == [(1.0, True)]
    cut = [episode for episode in online if "cut" in episode.metadata]
    assert [episode.metadata["cut"] for episode in cut] == ["emergency stop by Anna"]
    assert cut[0].source[-1] == Source.HOLD
    log = read_rows(run / "operator.jsonl")
    done = [row.get("what") or row.get("text") or row["kind"] for row in log]
    assert done[:8] == ["took control", "wrong way", "success", "label", "e-stop", "release e-stop", "resume", "left"]
    (label,) = [row for row in log if row["kind"] == "label"]
    with EpisodeStore.open(run / "episodes") as store:
        assert label["success"] is not store.summaries()[store.ids().index(label["of"])].success
        assert store.read(label["of"], rewards=label["label"]).reward[-1] == float(label["success"])
