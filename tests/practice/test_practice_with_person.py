"""A person at the console of a practice on an arm: takes over, judges, makes the scene ready; and kill -9."""

import asyncio
import contextlib
import json
import signal

import pytest
from browser import answer, job
from judged_arm import practised_arm
from pages import LEAD, page

from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.practice.files import PracticeFiles
from robot_rl.system.checked_json import read_rows

TASKS = ("there", "back")
SMALL = {
    "demonstrations": 0,
    "replay.batch_size": 16,
    "sac.hidden_sizes": [32, 32],
    "update_to_data": 1,
    "warmup_steps": 1000,
    "evaluation.episodes": 1,
}
CONSOLE = ("--console", "127.0.0.1:0", "--heartbeat", 5)


class Served:
    """What `page` has to know of a console."""

    def __init__(self, url):
        self.url = url.rstrip("/")


def judged_by_person(content):
    """Both tasks are judged by a person alone."""
    content["cell"]["judge"] = "person"
    content.pop("goal")
    content["reverse"].pop("goal")
    content["task"]["max_steps"] = 60


async def seen(anna, where):
    """The next state like that, on a machine that may be busy."""
    async with asyncio.timeout(25):
        while True:
            with contextlib.suppress(TimeoutError):
                return await anna.hear("state", where)


def plays(task, after=None, steps=3):
    """Whether a task plays an episode, another one than that before."""
    return lambda m: (
        (m["episode"]["id"] or "").startswith(f"{task}:")
        and m["episode"]["id"] != after
        and m["episode"]["source"]
        and m["episode"]["step"] >= steps
        and not m["holds"]
    )


async def judged(anna, task, verdict="success", **where):
    """Judges an episode of a task while it runs; its name."""
    running = (await seen(anna, plays(task, **where)))["episode"]["id"]
    await anna.say(type="do", what=verdict, episode=running)
    return running


async def until_killed(url, process):
    """One direction succeeds, the person leads in the other one; then there is no program any more."""
    async with page(Served(url)) as anna:
        assert anna.job["turns"] == list(TASKS)
        await anna.take()
        first = await judged(anna, "there")
        assert (await anna.hear("job"))["job"]["task"] == "back"
        state = await seen(anna, plays("back"))
        assert "It is the turn of back" in state["phase"]["text"]
        await anna.say(type="label", episode=first, success=False)
        await anna.hear("labelled")
        await anna.say(type="label", episode=first, success=True)
        await anna.hear("labelled")
        anna.axes = list(LEAD["axes"])
        await seen(anna, lambda m: m["episode"]["source"] == "human" and m["episode"]["step"] > 12)
        process.send_signal(signal.SIGKILL)


async def until_finished(url):
    """Nothing succeeds, so that the person is called; then both directions do, and both are evaluated."""
    async with page(Served(url)) as anna:
        await anna.take()
        state = await seen(anna, plays("back", steps=1))
        assert [row["id"] for row in state["ended"]] == ["there:episode-00000", "back:episode-00000"]
        await judged(anna, "back", "failure")
        state = await seen(anna, lambda m: m["call"])
        assert "make the scene ready for back, then press Resume" in state["call"]
        assert [hold["reason"] for hold in state["holds"]] == [state["call"]]
        await anna.say(type="do", what="resume")
        await judged(anna, "back", after="back:episode-00001")
        await judged(anna, "there", "reset")
        state = await seen(anna, lambda m: m["call"])
        assert "you have ended the last episode to reset the scene" in state["call"]
        assert state["health"]["person"]["manual_resets"] == 1
        await anna.say(type="do", what="resume")
        last, evaluated = "there:episode-00001", set()
        while len(evaluated) < 2:  # until all steps are done, and then each is evaluated once
            state = await seen(anna, lambda m, last=last: any(plays(task, after=last)(m) for task in TASKS))
            last = state["episode"]["id"]
            if state["phase"]["name"] == "evaluating":
                evaluated.add(last)
                assert "Success or Failure" in state["phase"]["text"]
                assert set(state["phase"]["requests"]) == {"success", "failure"}
            await anna.say(type="do", what="success", episode=last)
        await anna.give_back()


@pytest.mark.slow
@pytest.mark.wall_clock
def test_a_person_leads_judges_and_makes_the_scene_ready_and_nothing_is_lost_by_kill_9(tmp_path):
    file, path, called = practised_arm(tmp_path, judged_by_person), tmp_path / "practice", tmp_path / "called"
    flags = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    with job("practice", "there", "--robot", file, *flags, "--steps", 1000, *CONSOLE, "--out", path) as (process, url):
        with contextlib.suppress(ConnectionError):
            asyncio.run(until_killed(url, process))
        process.wait()
    before = PracticeFiles(path).episodes()
    assert [(row["task"], row["success"]) for row in before] == [("there", True)]
    assert before[0]["person"]["labels"] == before[0]["person"]["presses"] == 1
    plan = json.loads((path / "practice.json").read_text())
    (path / "practice.json").write_text(json.dumps({**plan, "patience": 0.2}))
    call = ("--call", f"sh -c 'echo \"$0\" >> {called}'")
    resumed = ("practice", "--robot", file, "--resume", *CONSOLE, *call, "--steps", 40, "--out", path, "--json")
    with job(*resumed) as (process, url):
        asyncio.run(until_finished(url))
        summary = answer(process)
    rows = PracticeFiles(path).episodes()
    assert rows[: len(before)] == before
    turns = [(row["task"], row["success"]) for row in rows[len(before) :]]
    assert turns[:4] == [("back", False), ("back", True), ("there", False), ("there", True)]
    assert "back needs a person: no success" in called.read_text()
    assert summary["manual_resets"] == summary["person"]["manual_resets"] == 2
    assert summary["person"]["seconds"] > 0.5
    assert summary["person"]["takeovers"] == summary["tasks"]["back"]["person"]["takeovers"] >= 1
    later = [row for row in read_rows(path / "there" / "operator.jsonl") if row["kind"] == "label"]
    assert [(row["of"], row["success"]) for row in later] == [("episode-00000", False), ("episode-00000", True)]
    assert [summary["tasks"][task]["success_rate"] for task in TASKS] == [1.0, 1.0]
    with EpisodeStore.open(path / "back" / "episodes") as store:
        led = store.read("episode-00000")
        assert led.facts.interrupted and Source.HUMAN in led.source
    pressed = [(row["what"], row["episode"]) for row in read_rows(path / "there" / "operator.jsonl") if "what" in row]
    assert ("reset", "episode-00001") in pressed
