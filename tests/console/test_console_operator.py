"""One operator leads, everybody may stop, who is lost holds the arm: against the running console."""

import asyncio
import time

import pytest
from fakes import SPEC
from pages import HOLD_WITHIN, LEAD, SLACK, Rig, held, page, run

from robot_rl.console.recorded_episodes import recorded_rows
from robot_rl.data.schema import Source
from robot_rl.system.checked_json import read_rows

# ----------------------------------------------------------------- being in control


def test_exactly_one_operator_leads_and_everybody_may_stop(rig):
    async def test():
        async with page(rig) as anna, page(rig, "Ben") as ben:
            await anna.take_over(rig)
            await ben.say(type="lease", take=True)
            assert "Anna is in control; ask them" in (await ben.hear("error"))["text"]
            assert (await ben.hear("state"))["owner"] == "Anna"
            await ben.say(type="do", what="success")
            assert "Anna is in control" in (await ben.hear("error"))["text"]
            await ben.say(**{**LEAD, "axes": [-1, 0, 0, 0, 0, 0]})
            assert rig.console.devices.first.read().axes[0] > 0

            await ben.say(type="do", what="e-stop")
            await held(rig, "e-stop")
            await ben.say(type="do", what="release e-stop")
            await ben.hear("error")
            assert "e-stop" in rig.holds
            await anna.say(type="do", what="resume")
            assert "release it first" in (await anna.hear("error"))["text"]
            await anna.say(type="do", what="release e-stop")
            state = await anna.hear("state", lambda m: m["holds"] and m["holds"][0]["name"] != "e-stop")
            assert state["holds"][0]["name"] == "pause", "released, it still waits for Resume"
            commands = len(rig.io.commands)
            await asyncio.sleep(0.1)
            assert len(rig.io.commands) == commands
            await anna.say(type="do", what="resume")
            await anna.hear("state", lambda m: not m["holds"] and m["episode"]["source"])
            await anna.give_back()
            await ben.take()
            assert (await ben.hear("state", lambda m: m["mine"]))["owner"] == "Ben"

    run(test)


def test_a_judgement_that_comes_after_the_end_of_its_episode_is_not_of_the_next(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take()
            seen = (await anna.hear("state", lambda m: m["episode"]["step"] > 2))["episode"]["id"]
            rig.supervision.cut("by itself")
            now = (await anna.hear("state", lambda m: m["episode"]["id"] != seen and m["episode"]["step"]))["episode"][
                "id"
            ]
            await anna.say(type="do", what="success", episode=seen)
            assert f"{seen} had ended before: success was not counted" in (await anna.hear("error"))["text"]
            await anna.say(type="do", what="success", episode=now)
            ended = (await anna.hear("state", lambda m: any(row["judge"] == "operator" for row in m["ended"])))["ended"]
            assert {row["id"]: row["success"] for row in ended}[now] is True
            assert [row["judge"] for row in ended if row["id"] == seen] != ["operator"]
            await anna.give_back()

    run(test)


@pytest.mark.parametrize("how", ["silent", "closed", "cut", "hidden"])
def test_an_operator_who_is_lost_holds_the_arm_and_the_data_are_intact(rig, how):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await anna.quiet()
            seen = time.monotonic()
            await anna.say(**LEAD)
            if how == "closed":
                await anna.socket.close()
            elif how == "cut":
                anna.socket._response.connection.transport.abort()
            elif how == "hidden":
                await anna.say(type="hidden")
            await held(rig, "operator")
            waited = time.monotonic() - seen
            assert waited <= HOLD_WITHIN + SLACK
            commands = len(rig.io.commands)
            await asyncio.sleep(0.2)
            assert len(rig.io.commands) == commands, "nothing moves until somebody says so"
        async with page(rig, "Ben") as ben:
            assert "Anna" in (await ben.hear("state"))["holds"][0]["reason"]
            await ben.say(type="do", what="resume")
            assert "press Take control first" in (await ben.hear("error"))["text"]
            await ben.take()
            await ben.say(type="do", what="resume")
            await ben.hear("state", lambda m: not m["holds"] and m["episode"]["source"] == "policy")
            await ben.give_back()
            await ben.hear("state", lambda m: m["owner"] is None)

    run(test)
    cut = [row for row in rig.store.summaries() if "cut" in row.metadata]
    assert len(cut) == 1
    episode = rig.store.read(cut[0].episode_id)
    assert "Anna" in episode.metadata["cut"] or "newest input" in episode.metadata["cut"]
    assert episode.truncated[-1]
    assert episode.source[-1] == Source.HOLD
    assert not episode.action[-1].any()
    assert Source.HUMAN in episode.source
    assert [row["kind"] for row in read_rows(rig.log)] == ["took control", "lost", "took control", "do", "left"]


def test_giving_control_back_on_purpose_lets_the_policy_go_on(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await anna.give_back()
        async with page(rig, "Ben") as ben:
            await ben.hear("state", lambda m: m["episode"]["source"] == "policy")
        assert rig.holds == {}

    run(test)


def test_rows_of_what_is_recorded_are_those_that_were_shown_while_it_was_played(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await asyncio.sleep(0.1)
            await anna.say(type="do", what="success")
            await anna.hear("state", lambda m: m["ended"])
            await anna.give_back()

    run(test)
    shown = rig.board.state()["ended"][0]
    recorded = next(row for row in recorded_rows(rig.store.path, SPEC.control_period) if row["id"] == shown["id"])
    assert recorded["led"] > 0
    assert recorded["takeovers"] == 1
    assert {**recorded, "force_peak": shown["force_peak"], "seconds": shown["seconds"]} == shown
    rig.board.ended(recorded)
    ids = [row["id"] for row in rig.board.state()["ended"]]
    assert ids.count(shown["id"]) == 1, "an episode that is read or played again has one row"


def test_a_record_that_cannot_be_written_does_not_end_the_watch_over_the_next_page(rig, tmp_path):
    rig.console.record_to(tmp_path / "gone" / "operator.jsonl")

    async def test():
        async with page(rig) as anna:
            for _ in range(2):
                await anna.take_over(rig)
                await anna.quiet()
                await held(rig, "operator")
                assert rig.console.owner is None
                await anna.take()
                await anna.say(type="do", what="resume")
                async with asyncio.timeout(10):
                    while rig.holds:  # what the page hears may be older
                        await asyncio.sleep(0.01)
                await anna.give_back()

    run(test)


def test_judgement_notes_and_labels_are_recorded_as_the_persons(rig):
    async def test():
        async with page(rig) as anna:
            await anna.take_over(rig)
            await anna.say(type="do", what="success")
            ended = await anna.hear("state", lambda m: any(row["judge"] == "operator" for row in m["ended"]))
            name = next(row["id"] for row in ended["ended"] if row["judge"] == "operator")
            await anna.say(type="note", text="the cable was\u2028in the way")
            await anna.hear("noted")
            await anna.say(type="label", episode=name, success=False)
            await anna.hear("labelled")
            async with anna.session.get(f"{rig.url}/episodes/{name}") as answer:
                assert (await answer.json())["steps"] >= 1
            await anna.give_back()
            await anna.hear("state", lambda m: m["owner"] is None)
            return name

    name = asyncio.run(test())
    recorded = rig.store.read(name)
    assert (recorded.reward[-1], recorded.reward_source, recorded.metadata["success"]) == (1.0, "operator", True)
    corrected = rig.store.read(name, rewards="operator-1")
    assert not corrected.reward.any()
    texts = [row["text"] for row in read_rows(rig.log) if row["kind"] == "note"]
    assert texts == ["the cable was\u2028in the way"]


def test_a_note_where_nothing_is_recorded_is_not_said_to_be_noted_and_goes_on_once_it_is(tmp_path):
    async def test():
        async with page(rig) as anna:
            for kind in ("note", "reason"):
                await anna.say(type="note", kind=kind, text="stuck at the rim")
                told = (await anna.hear("error"))["text"]
                assert told == "nothing is recorded here now, so this was not noted: stuck at the rim"
            rig.console.record_to(rig.log)
            await anna.say(type="note", text="stuck again")
            await anna.hear("noted")

    with Rig(tmp_path, recorded=False) as rig:
        run(test)
    assert [row["text"] for row in read_rows(rig.log)] == ["stuck again"]
