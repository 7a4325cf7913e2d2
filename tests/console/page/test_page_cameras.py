"""The live views: large enough, alone by a key, and how late they are."""

import re

import pytest
from browser import Person, chromium
from pages import Rig, page, run

from robot_rl.console.protocol import picture_message

LAPTOP = (1280, 800)
BEFORE = 271
"""Width of each camera on a laptop when somebody called it too small [px]."""


def box(page, selector):
    return page.locator(selector).bounding_box()


@pytest.mark.slow
def test_cameras_are_large_and_one_can_be_alone_with_the_stop(tmp_path):
    with chromium(LAPTOP) as page, Rig(tmp_path, filmed=True, heartbeat=5.0) as rig:
        anna = Person(page, rig.url)
        page.wait_for_selector("#cameras .camera.chosen")
        large, other = (box(page, f"#cameras .camera{which}") for which in (".chosen", ":not(.chosen)"))
        assert large["width"] >= 2 * BEFORE
        assert other["width"] > BEFORE
        for view in (large, other):
            assert view["y"] + view["height"] <= LAPTOP[1], "all are in sight at once"
            assert view["width"] / view["height"] == pytest.approx(64 / 48, rel=0.01), "nothing is cut off"
        assert page.inner_text("#cameras .camera.chosen").startswith("front")
        anna.press("2")
        assert page.inner_text("#cameras .camera.chosen").startswith("wrist")
        page.click("#cameras .camera:not(.chosen)")
        assert page.inner_text("#cameras .camera.chosen").startswith("front")

        page.click("#cameras .camera.chosen img")
        anna.until("it is alone", "document.body.classList.contains('cinema')")
        anna.press("f")
        anna.until("all are back", "!document.body.classList.contains('cinema')")
        anna.press("f")
        alone, bar = box(page, "#cameras .camera.chosen"), box(page, ".bar")
        assert alone["width"] == LAPTOP[0]
        assert alone["height"] > 0.9 * (LAPTOP[1] - bar["height"] - box(page, "footer")["height"])
        assert page.locator("#cameras .camera:visible").count() == 1
        anna.press("Escape")  # a browser's own full screen would swallow it
        anna.until_title("Emergency stop")
        anna.press("f")
        assert page.locator("#cameras .camera:visible").count() == 2
        assert anna.errors == []


@pytest.mark.slow
def test_the_page_shows_how_late_it_is(tmp_path):
    with chromium(LAPTOP) as page, Rig(tmp_path, filmed=True, heartbeat=5.0) as rig:
        anna = Person(page, rig.url)
        shown = "document.querySelector('#latency').textContent"
        anna.until("both are known", rf"/picture \d+ ms, command \d+ ms/.test({shown})")
        picture, command = map(int, re.findall(r"\d+", page.inner_text("#latency")))
        assert picture < 2000, "the point is read every 5 ms"
        assert command < 1000


def test_a_frame_says_how_old_it_is_and_a_ping_is_answered(tmp_path):
    async def test():
        async with page(rig) as anna:
            await anna.hear("state", lambda m: m["arm"] and m["arm"]["cameras"])
            await anna.say(type="ping", at=123.5)
            assert (await anna.hear("pong"))["at"] == 123.5
            await anna.say(type="ping", at=-1)
            assert "at" in (await anna.hear("error"))["text"]

    with Rig(tmp_path, filmed=True, heartbeat=5.0) as rig:
        run(test)


@pytest.mark.parametrize(("age", "sent"), [(0.0, 0), (0.0304, 30), (1.5, 1500), (1e6, 65535)])
def test_the_age_of_a_frame_is_two_bytes(age, sent):
    message = picture_message(3, age, b"jpeg")
    assert (message[0], int.from_bytes(message[1:3], "big"), message[3:]) == (3, sent, b"jpeg")
