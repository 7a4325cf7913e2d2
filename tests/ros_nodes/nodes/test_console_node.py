"""The operator console over topics: a page that is a program, before a simulated arm that waits for the person."""

import asyncio
import contextlib
import threading
import time

import numpy as np
import pytest
from pages import page
from ros_nodes_graph import Cell
from served_console import Console
from waiting import eventually

from robot_rl.data.schema import Source
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.hil.remote_operator import RemoteOperator
from ros_nodes.bridge.ros_operator import RosOperator
from ros_nodes.nodes.console_node import ConsoleNode

pytest.importorskip("aiohttp", reason="the console needs aiohttp: pip install 'robot_rl[console]'")
OPTIONS = WorkcellOptions(cameras=("wrist",), image_size=(64, 64))
STILL = np.zeros(3, np.float32)


@pytest.fixture
def cell(graph):
    """In lockstep with a person: the robot waits for the console's answer at every step."""
    made = Cell(graph, "reach", options=OPTIONS, operator="person")
    made.console = Console(graph, heartbeat=10.0)
    made.env = RobotEnv(made.workcell, interventions=True, options=OPTIONS)
    yield made
    made.console.close()


def step(cell):
    return cell.env.step(STILL)[-1]["step"].recorded


def step_until(cell, source):
    """The first step that somebody leads; what a page says needs a moment, but few steps."""
    for _ in range(20):
        one = step(cell)
        if one.source == source:
            return one
        time.sleep(0.1)
    raise AssertionError(f"{source} never led")


def test_a_person_at_the_page_takes_over_stops_and_goes_on(cell):
    cell.env.reset(seed=3)
    assert step(cell).source == Source.POLICY

    async def test():
        async with page(cell.console) as anna:
            assert (anna.job["kind"], anna.job["task"]) == ("robot", "reach")
            await anna.take(axes=(0.8, 0, 0, 0, 0, 0))
            await anna.hear("state", lambda m: m["mine"])
            led = await asyncio.to_thread(step_until, cell, Source.HUMAN)
            assert np.argmax(np.abs(led.action)) == 0
            seen = await anna.hear("state", lambda m: m["episode"]["source"] == "human")
            assert seen["arm"]["cameras"] == ["wrist"]
            assert list(seen["arm"]["views"]) == ["wrist"], "the simulation publishes where its cameras are"
            assert seen["phase"]["requests"] == [], "in simulation the task judges by itself"
            scene = await anna.hear("state", lambda m: m["arm"]["links"] and m["arm"]["target"])
            flange = np.array(scene["arm"]["links"][-1])
            assert flange.shape == (3,), "the simulation publishes its URDF"
            assert np.linalg.norm(flange - scene["arm"]["position"]) < 0.3
            assert np.linalg.norm(np.subtract(scene["arm"]["target"]["position"], scene["arm"]["position"])) < 0.05

            await anna.say(type="do", what="e-stop")
            held = await anna.hear("state", lambda m: m["holds"])
            assert held["holds"][0]["name"] == "e-stop"
            await asyncio.to_thread(eventually, lambda: cell.safety.guard.tripped is not None)
            await asyncio.to_thread(step_until, cell, Source.HOLD)
            await anna.say(type="do", what="release e-stop")
            await anna.hear("state", lambda m: [hold["name"] for hold in m["holds"]] == ["pause"])
            assert cell.safety.guard.tripped is not None, "released, it still waits for Resume"
            await anna.say(type="do", what="resume")
            await anna.hear("state", lambda m: not m["holds"])
            assert cell.safety.guard.tripped is None
            await asyncio.to_thread(step_until, cell, Source.HUMAN)

            await anna.quiet()
            await anna.socket.close()
        assert await asyncio.to_thread(eventually, lambda: cell.safety.guard.tripped is not None), "who leads is gone"

    asyncio.run(test())


def test_what_the_safety_node_found_holds_until_a_person_says_otherwise(cell):
    cell.env.reset(seed=3)

    async def test():
        async with page(cell.console) as anna:
            await anna.take()
            cell.safety.guard.trip("too large a force")
            held = await anna.hear("state", lambda m: m["holds"])
            assert held["holds"] == [{"name": "safety", "reason": held["holds"][0]["reason"]}]
            assert "too large a force" in held["holds"][0]["reason"]
            await anna.say(type="do", what="success")
            assert "no node listens on /operator/judgement" in (await anna.hear("error"))["text"]
            await anna.say(type="do", what="resume")
            await anna.hear("state", lambda m: not m["holds"])
            assert cell.safety.guard.tripped is None
            await anna.give_back()

    asyncio.run(test())


def test_a_demonstration_in_simulation_begins_when_the_person_says_so(cell):
    async def test():
        async with page(cell.console) as anna:
            await anna.take(axes=(0, 0.8, 0, 0, 0, 0))
            reset = asyncio.create_task(asyncio.to_thread(cell.env.reset, seed=3, options={"demonstrate": True}))
            asked = await anna.hear("state", lambda m: m["phase"]["requests"] == ["start"])
            assert asked["phase"]["text"] == "Press Start; then lead."
            assert not reset.done()
            await anna.say(type="do", what="start")
            await reset
            led = await asyncio.to_thread(step_until, cell, Source.HUMAN)
            assert np.argmax(np.abs(led.action)) == 1
            await anna.give_back()

    asyncio.run(test())


def test_a_page_leads_one_of_two_arms_and_then_the_other_one_while_the_policy_keeps_the_rest(graph):
    cell = Cell(graph, "handover", operator="person", safety={"arms": ["left", "right"]})
    console = Console(graph, heartbeat=10.0)
    env = RobotEnv(cell.workcell, interventions=True)
    env.reset(seed=3)
    still = np.zeros(env.action_space.shape, np.float32)

    def led():
        return env.step(still)[-1]["step"].recorded.arm_sources.tolist()

    async def test():
        async with page(console) as anna:
            assert anna.job["arms"] == ["left", "right"]
            await anna.take(axes=(0.5, 0, 0, 0, 0, 0))
            shown = await anna.hear("state", lambda m: m["chosen_arm"] == "left" and m["arm"])
            assert await asyncio.to_thread(eventually, lambda: led() == [Source.HUMAN, Source.POLICY])
            aimed = await anna.hear("state", lambda m: m["arm"]["target"])
            assert np.linalg.norm(np.subtract(aimed["arm"]["target"]["position"], aimed["arm"]["position"])) < 0.05
            await anna.say(type="do", what="next_arm")
            assert await asyncio.to_thread(eventually, lambda: led() == [Source.POLICY, Source.HUMAN])
            other = await anna.hear("state", lambda m: m["chosen_arm"] == "right")
            assert other["arm"]["position"] != shown["arm"]["position"]
            await anna.give_back()

    asyncio.run(test())
    console.close()


def test_a_real_arm_is_made_ready_and_judged_from_the_page(graph):
    from real_cell import NAMESPACE, RealCell

    cell = RealCell(graph)
    console = Console(
        type(
            "In",
            (),
            {
                "add": staticmethod(
                    lambda kind, **p: graph.add(lambda **options: kind(cli_args=NAMESPACE, **options), **p)
                ),
                "thread": staticmethod(graph.thread),
            },
        )(),
        heartbeat=10.0,
        max_age=10.0,
    )

    person = RemoteOperator()
    RosOperator(cell.actor, person)
    stack = contextlib.ExitStack()
    env = stack.enter_context(person.environment(cell.workcell, WorkcellOptions(), interventions=True, overrule_s=0.0))
    still = np.zeros(env.spec_task.action_size, np.float32)

    async def ready(anna):
        asked = await anna.hear("state", lambda m: m["phase"]["requests"] == ["start"])
        assert "bring the arm to its start pose" in asked["phase"]["text"]
        await anna.say(type="do", what="start")

    def ending():
        while True:
            *_, terminated, truncated, info = env.step(still)
            if terminated or truncated:
                return info

    async def test():
        async with page(console) as anna:
            await anna.take()
            started = asyncio.create_task(ready(anna))
            await asyncio.to_thread(env.reset, seed=3)
            await started
            ends = asyncio.create_task(asyncio.to_thread(ending))
            await anna.hear("state", lambda m: m["phase"]["requests"] == ["success", "failure", "reset"])
            for text in ("doubt: the policy may fail", ""):
                person.call(text)
                await anna.hear("state", lambda m, text=text: m["call"] == text)
            await anna.say(type="do", what="success")
            ended = (await ends)["step"]
            assert (ended.success, ended.recorded.reward_source) == (True, "operator")
            await anna.give_back()

    asyncio.run(test())
    stack.close()
    console.close()


def test_without_a_task_it_says_so(graph):
    node = graph.add(ConsoleNode, graph_timeout=0.2)
    with pytest.raises(Exception, match="is the robot running"):
        node.serve(threading.Event())


def test_half_a_certificate_is_refused(graph):
    with pytest.raises(Exception, match="needs both certificate and key"):
        graph.add(ConsoleNode, certificate="a.pem")
