"""The scene in three dimensions: where everything is, and that it is drawn, turned and told."""

import numpy as np
import pytest
from browser import Person, chromium
from pages import Rig, page, run
from test_camera_views import FACING

LINKS = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.3], [0.4, 0.0, 0.4]])
PICTURE = "() => document.querySelector('#scene').toDataURL()"


def test_links_box_set_point_and_cameras_are_where_they_are(tmp_path):
    async def test():
        async with page(rig) as anna:
            arm = (await anna.hear("state", lambda m: m["arm"] and m["arm"]["target"]))["arm"]
            assert arm["links"] == LINKS.tolist()
            assert arm["mounts"]["front"]["position"] == pytest.approx([0.9, 0.0, 0.4])
            assert arm["target"]["position"] == pytest.approx(arm["position"], abs=0.02)
            assert np.add(arm["start"], arm["offset"]) == pytest.approx(arm["position"], abs=1e-3)
            await anna.say(type="do", what="e-stop")
            assert (await anna.hear("state", lambda m: m["holds"] and not m["arm"]["target"]))["arm"]["target"] is None

    with Rig(tmp_path, filmed=True, mounts={"front": FACING}, links=lambda joints: LINKS) as rig:
        run(test)


@pytest.mark.slow
@pytest.mark.parametrize("links", [None, lambda joints: LINKS])
def test_it_is_drawn_and_can_be_turned_and_told(tmp_path, links):
    with chromium() as browser, Rig(tmp_path, mounts={"front": FACING}, links=links, heartbeat=5.0) as rig:
        anna = Person(browser, rig.url)
        anna.until("the scene is told", "/mm from where it started/.test(document.querySelector('#scene').ariaLabel)")
        anna.press("Escape")
        anna.until_title("Emergency stop")  # nothing moves any more
        pictures = [browser.evaluate(PICTURE)]
        browser.focus("#scene")
        for turn in ("ArrowLeft", "ArrowUp", "+"):
            anna.press(turn)
            pictures.append(browser.evaluate(PICTURE))
        browser.hover("#scene")
        browser.mouse.down()
        browser.mouse.move(300, 300)
        browser.mouse.up()
        pictures.append(browser.evaluate(PICTURE))
        browser.click("#scene-whole")
        anna.until(
            "the button offers the other view", "/Around/.test(document.querySelector('#scene-whole').textContent)"
        )
        pictures.append(browser.evaluate(PICTURE))
        assert len(set(pictures)) == len(pictures), "each view is another picture"
        assert anna.errors == []
