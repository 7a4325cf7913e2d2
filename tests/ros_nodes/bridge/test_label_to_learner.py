"""What a person says at the console over topics reaches the actor's episodes, its store, and the learner's memory."""

import asyncio
import os
import signal

import pytest
from bringup_process import SMALL
from pages import page
from served_console import Console

from robot_rl.data.schema import Source
from robot_rl.data.store.operator_labels import operator_words
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import InterruptedRunError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.system.atomic_file import to_json
from ros_nodes.nodes.actor_node import ActorNode
from ros_nodes.nodes.learner_node import LearnerNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode
from ros_nodes.nodes.teleop_node import TeleopNode

SETTINGS = {**SMALL, "demonstrations": 0, "env_steps": 5000, "warmup_steps": 5000}


def ended(state, where):
    """Episodes that ended like that."""
    return [row for row in state["ended"] if where(row)]


async def say_until(anna, what, where):
    """Says it again until an episode has ended like that: one may end by itself just before. Gives its row."""
    while not (rows := ended(state := await anna.hear("state"), where)):
        if state["episode"]["step"] > 2:
            await anna.say(type="do", what=what)
            await asyncio.sleep(0.5)
    return rows[0]


async def person(console, said):
    """Resets an episode, ends one as a success, corrects the word on the first of them, pauses, and goes on."""
    async with page(console) as anna:
        await anna.take()
        await anna.hear("state", lambda m: m["phase"]["requests"] == ["success", "failure", "reset"])
        said["reset"] = await say_until(anna, "reset", lambda row: row["cut"] == "reset by the operator")
        said["success"] = await say_until(anna, "success", lambda row: row["judge"] == "operator")
        await anna.say(type="label", episode=said["reset"]["id"], success=True)
        await anna.hear("labelled")
        await anna.say(type="do", what="pause")
        paused = lambda row: row["cut"] == "paused by Anna"  # noqa: E731
        said["paused"] = ended(await anna.hear("state", lambda m: ended(m, paused)), paused)[0]
        steps = {(await anna.hear("state"))["episode"]["step"] for _ in range(5)}
        assert len(steps) == 1, "no episode begins while the arm is held"
        await anna.say(type="do", what="resume")
        await anna.hear("state", lambda m: not m["holds"] and m["episode"]["source"] == "policy")
        os.kill(os.getpid(), signal.SIGINT)  # the training stops with this episode, and saves
        await anna.say(type="do", what="failure")
        await anna.give_back()


def test_a_persons_word_over_topics_is_recorded_and_learned_as_in_one_process(graph, tmp_path):
    run, said = tmp_path / "run", {}
    graph.add(SimNode, task="reach", lockstep=True, operator="person")
    graph.add(SafetyNode, lockstep=True)
    graph.add(TeleopNode)
    graph.thread(graph.add(LearnerNode).serve)
    settings = [f"{key}={to_json(value)}" for key, value in {**SETTINGS, "task": "reach"}.items()]
    actor = graph.add(ActorNode, out=str(run), settings=settings, graph_timeout=20.0)
    console = Console(graph, heartbeat=10.0, run=str(run))

    def at_the_console():
        try:
            asyncio.run(person(console, said))
        except BaseException:
            os.kill(os.getpid(), signal.SIGINT)  # or the training would go on
            raise

    beside = graph.thread(at_the_console)
    with pytest.raises(InterruptedRunError):
        actor.run()
    beside.join()
    console.close()

    assert (run / "interventions.png").is_file()
    cut, won, paused = (said[name]["id"] for name in ("reset", "success", "paused"))
    with EpisodeStore.open(run / "episodes") as store:
        episodes = {name: store.read(name) for name in store.ids()}
        assert [(name, word["success"]) for name, word in operator_words(store).items()] == [(cut, True)]
    assert (episodes[cut].facts.cut, episodes[cut].reward.sum()) == ("reset by the operator", 0.0)
    assert (episodes[won].reward_source, episodes[won].facts.overruled) == ("operator", "task")
    assert (episodes[won].reward[-1], episodes[won].terminated[-1]) == (1.0, True)
    assert episodes[paused].source[-1] == Source.HOLD
    learned = load_checkpoint(run / "checkpoint.pt")["learner"]["online"]
    ends = dict(zip(episodes, learned["episode_rows"].cumsum() - 2, strict=True))  # the last row has no step
    for name, expected in ((cut, (1.0, True)), (won, (1.0, True)), (paused, (0.0, False))):
        assert (learned["reward"][ends[name]], learned["terminated"][ends[name]]) == expected, name
