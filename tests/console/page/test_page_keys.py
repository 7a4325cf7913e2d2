"""The keyboard of the page: keys follow the chosen picture, count by their place, and can be changed."""

import pytest
from browser import Person, chromium
from pages import Rig, eventually
from test_camera_views import FACING

pytestmark = pytest.mark.slow

X, Y, Z = range(3)


@pytest.fixture
def anna(tmp_path):
    with chromium() as page, Rig(tmp_path, filmed=True, mounts={"front": FACING}, heartbeat=5.0) as rig:
        anna = Person(page, rig.url)
        anna.take_control()
        anna.until_title("Policy")
        anna.rig = rig
        yield anna
        assert anna.errors == []


def moves(anna, axis, sign):
    """Whether the page's device is deflected that way, and in no other, within a moment."""

    def so():
        deflection = anna.rig.console.devices.first.read().axes
        return abs(deflection[axis] - sign * 0.75) < 1e-3 and abs(deflection).sum() < 0.76

    return eventually(so)


def rests(anna):
    return eventually(lambda: not anna.rig.console.devices.first.read().axes.any())


def press(anna, code, key):
    """A key of some layout: the place `code` on which `key` is printed."""
    anna.page.evaluate(
        "([code, key]) => document.body.dispatchEvent(new KeyboardEvent('keydown', { code, key, bubbles: true }))",
        [code, key],
    )


def test_keys_follow_the_chosen_picture_where_its_camera_is_known(anna):
    page = anna.page
    page.wait_for_selector(".camera.chosen .compass")
    with anna.holding("w"):
        assert moves(anna, X, -1), "away from a camera that faces the robot"
    with anna.holding("d"):
        assert moves(anna, Y, 1), "to the right in its picture"
    with anna.holding("e"):
        assert moves(anna, Z, 1)
    anna.press("v")
    with anna.holding("w"):
        assert moves(anna, X, 1), "along the robot's base"
    anna.press("v")
    anna.press("2")
    page.wait_for_selector(".compass", state="detached")
    assert page.is_hidden("#follow")
    with anna.holding("w"):
        assert moves(anna, X, 1), "the pose of this camera is not known"


def test_keys_count_by_their_place(anna):
    press(anna, "KeyW", "z")  # a French keyboard
    assert moves(anna, X, -1)
    anna.press("w")
    assert rests(anna)
    press(anna, "KeyQ", "a")
    assert moves(anna, Z, -1)


def test_a_key_can_be_changed_but_not_the_stop(anna):
    page = anna.page

    def change(action, key):
        anna.press("?")
        page.click(f"#key-{action}")
        anna.press(key)

    change("ahead", "ArrowUp")
    change_is_shown = "document.querySelector('#key-ahead').textContent === '\u2191'"
    anna.until("it is shown", change_is_shown)
    page.click("#key-back")
    anna.press("e")  # has another action: they change places
    anna.until("both are shown", "document.querySelector('#key-up').textContent === 'S'")
    page.click("#help button:has-text('Close')")
    assert page.inner_text("#pad-xy .n") == "\u2191"
    with anna.holding("ArrowUp"):
        assert moves(anna, X, -1)
    with anna.holding("s"):
        assert moves(anna, Z, 1)
    page.reload()
    again = Person(page)
    again.rig = anna.rig
    again.take_control()
    with again.holding("ArrowUp"):
        assert moves(again, X, -1), "it is kept"
    anna.press("?")
    page.click("#keys-reset")
    page.click("#key-ahead")
    anna.press("Escape")
    anna.until_title("Emergency stop")
    anna.until("it stays", "!localStorage.getItem('keys').includes('Escape')")
    anna.press("?")
    assert page.inner_text("#key-ahead") == "W"
