"""`robot-rl up practice`: a task and its reverse in turn over topics, killed, interrupted and begun again."""

import json
import signal

import pytest

from robot_rl.data.store.store import EpisodeStore
from robot_rl.practice.files import PracticeFiles

PAIR = ("relocate_forward", "relocate_back")
SKILLED = {
    "demonstrations": 1,
    "base.kind": "scripted",  # the operator's actions, uncorrected: almost every episode succeeds
    "warmup": "base",
    "warmup_steps": 100_000,
    "max_lead_steps": 200,
    "evaluation.video_episodes": 0,
    "evaluation.episodes": 1,
}


def up(bringup, **settings):
    return bringup("practice", "--task", PAIR[0], "--seed", 100, "--lockstep", "--unattended", **SKILLED, **settings)


def wait_for_turn(practice, task, since):
    """Until an episode of a task is under way, after that many others."""
    partial = practice.run / task / "episodes" / "partial"
    practice.wait_until(lambda: len(PracticeFiles(practice.run).episodes()) > since and list(partial.glob("*.journal")))
    return PracticeFiles(practice.run).episodes()


def ways_of(store):
    """Where the other bin lies at the start of each episode: its offset from the tool along y [m]."""
    return [float(store.read(name).observations["state/bin"][0][1]) for name in store.ids()]


@pytest.mark.timeout(900)
def test_it_goes_on_in_the_right_direction_after_kill_9_and_after_ctrl_c(bringup):
    practice = up(bringup, env_steps=450)
    before = wait_for_turn(practice, "relocate_back", since=0)
    practice.kill("practice")
    practice.wait_for("continues the practice in")
    killed = wait_for_turn(practice, "relocate_forward", since=len(before))
    assert killed[: len(before)] == before
    assert killed[len(before)]["task"] == "relocate_back"  # that of the killed episode, in the scene before it
    practice.process.send_signal(signal.SIGINT)
    assert practice.end() == 130, practice.text()
    assert "and saved; continue with: the same `robot-rl up`" in practice.text()
    stopped, turn = PracticeFiles(practice.run).episodes(), PracticeFiles(practice.run).state().next
    practice = up(bringup, env_steps=450)  # with a simulation that has laid out another scene
    assert practice.end() == 0, practice.text()
    rows = PracticeFiles(practice.run).episodes()
    assert rows[: len(stopped)] == stopped
    assert len(rows) > len(stopped)
    assert rows[len(stopped)]["task"] == turn
    summary = json.loads((practice.run / "summary.json").read_text())
    assert summary["env_steps"] >= sum(row["steps"] for row in rows)  # those of killed episodes count too
    assert (summary["manual_resets"], summary["unattended"]) == (0, True)
    for task in PAIR:
        with EpisodeStore.open(practice.run / task / "episodes") as store:
            assert len({way > 0 for way in ways_of(store)}) == 1  # each direction carries the cube one way
