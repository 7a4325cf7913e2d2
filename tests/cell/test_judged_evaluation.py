"""A person at the console judges an evaluation on an arm, at the end of a training and by `robot-rl eval`."""

import asyncio
import contextlib
import json

import pytest
from browser import answer, job
from judged_arm import judged_arm
from pages import LEAD, page
from running import robot_rl

from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.statistics import wilson_interval
from robot_rl.system.checked_json import read_rows

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]

SMALL = {
    "demonstrations": 0,
    "replay.batch_size": 16,
    "sac.hidden_sizes": [32, 32],
    "warmup_steps": 10,
    "evaluation.curve_interval": 0,
    "evaluation.episodes": 1,
    "env_steps": 20,
}
CONSOLE = ("--console", "127.0.0.1:0", "--heartbeat", 5)
BUTTON = "a button of a device"
MAP = "axes: {x: x}\nbuttons: {success: close}\n"
"""The page's hands as a device with a button for success, as a SpaceMouse has one."""
VERDICTS = ("success", "failure", BUTTON)


class Served:
    """What `page` has to know of a console."""

    def __init__(self, url):
        self.url = url.rstrip("/")


async def seen(anna, where):
    """The next state like that, on a machine that may be busy."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(TimeoutError):
                return await anna.hear("state", where)


async def judge(url, verdicts):
    """Ends one episode of the evaluation after the other, with the hands at the keys that move the arm."""
    async with page(Served(url)) as anna:
        judged, buttons = None, {"success", "failure"}
        for verdict in verdicts:
            state = await seen(
                anna,
                lambda m, before=judged: (
                    m["phase"]["name"] == "evaluating" and m["episode"]["source"] and m["episode"]["id"] != before
                ),
            )
            assert set(state["phase"]["requests"]) == buttons and "Success or Failure" in state["phase"]["text"]
            if judged is None:
                await anna.take((0.8, 0, 0, 0, 0, 0))
            state = await seen(anna, lambda m: m["mine"] and m["episode"]["step"] > 3)
            judged = state["episode"]["id"]
            assert state["episode"]["source"] == "policy"
            assert all(row["id"].startswith("episode-") for row in state["ended"]), "rows are for labels, of a training"
            if verdict == BUTTON:
                await anna.quiet()
                await anna.say(**{**LEAD, "buttons": [True, False, False, False]})
                await asyncio.sleep(1.0)
            else:
                await anna.say(type="do", what=verdict)
        await anna.give_back()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A robot file, and a run on it whose evaluation a person has judged."""
    path = tmp_path_factory.mktemp("judged")
    (path / "robot.yaml").write_text(judged_arm())
    settings = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    with job(
        *("train", "plug", "--robot", path / "robot.yaml", *settings, *CONSOLE, "--out", path / "run", "--json")
    ) as (process, url):
        asyncio.run(judge(url, ["success"]))
        assert answer(process)["success_rate"] == 1.0
    return path


def test_what_a_person_says_of_each_episode_is_the_result(folder, tmp_path):
    before = sorted((path, path.stat().st_mtime_ns) for path in (folder / "run").rglob("*"))
    record = tmp_path / "evaluated"
    flags = ("--robot", folder / "robot.yaml", "--episodes", len(VERDICTS), "--record", record, "--json")
    (tmp_path / "map.yaml").write_text(MAP)
    with job("eval", folder / "run", *flags, *CONSOLE, "--map", f"browser={tmp_path / 'map.yaml'}") as (process, url):
        asyncio.run(judge(url, VERDICTS))
        facts = answer(process)
    assert (facts["episodes"], facts["success_rate"]) == (3, pytest.approx(2 / 3))
    assert facts["success_ci95"] == pytest.approx(list(wilson_interval(2, 3)))
    assert [row["success"] for row in facts["results"]] == [True, False, True]
    assert [row["takeovers"] for row in facts["results"]] == [0, 0, 0]
    with EpisodeStore.open(record) as store:
        for episode in store.episodes():
            assert episode.reward_source == "operator"
            assert Source.HUMAN not in episode.source
    assert [row["what"] for row in read_rows(record / "operator.jsonl") if row["kind"] == "do"] == list(VERDICTS[:2])
    assert sorted((path, path.stat().st_mtime_ns) for path in (folder / "run").rglob("*")) == before, "it is only read"


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--robot", "robot.yaml"), "nobody judges the episodes: give a person --console or --teleop DEVICE"),
        (("--console",), "--console and --teleop need --robot FILE"),
    ],
)
def test_what_is_missing_is_one_line(folder, flags, named):
    done = robot_rl("eval", folder / "run", *flags, cwd=folder)
    assert done.returncode in (1, 2)
    assert named in done.stderr


def test_what_was_judged_is_in_the_summary_of_the_training(folder):
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert (summary["episodes"], summary["success_rate"]) == (1, 1.0)
