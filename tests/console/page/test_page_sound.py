"""The page sounds at a stop and when a person is wanted, once each, and never for what it says anyway."""

import time

import pytest
from browser import Person, chromium
from pages import Rig, eventually

pytestmark = pytest.mark.slow

LISTEN = """
window.heard = [];
const start = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function (...when) {
  heard.push(this.frequency.value);
  return start.apply(this, when);
};
"""


def heard(anna):
    """The tones since the last time [Hz], once there are some."""
    eventually(lambda: anna.page.evaluate("heard.length"))
    time.sleep(0.3)
    return anna.page.evaluate("heard.splice(0)")


def nothing_heard(anna):
    time.sleep(0.5)
    return anna.page.evaluate("heard") == []


def rises(tones):
    return len(tones) > 1 and tones == sorted(tones)


def test_a_stop_and_a_request_for_a_person_sound_once_each(tmp_path):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0) as rig:
        page.add_init_script(LISTEN)
        rig.supervision.hold("safety", "too large a force")
        anna = Person(page, rig.url)
        anna.until_title("Held")
        assert nothing_heard(anna), "it was so before the page was opened"
        rig.supervision.release("safety")
        anna.until_title("Policy")

        rig.supervision.hold("e-stop", "emergency stop by Ben")
        anna.until_title("Emergency stop")
        stop = heard(anna)
        assert len(stop) > 1
        assert stop == sorted(stop, reverse=True), "it falls"
        assert nothing_heard(anna), "once"
        rig.supervision.release("e-stop")
        anna.until_title("Policy")

        rig.supervision.question = "classifier: success."
        anna.until_title("Success?")
        assert rises(heard(anna))
        rig.supervision.question = ""
        anna.until_title("Policy")
        rig.board.call("doubt: the policy may fail (risk 0.41); take over")
        anna.until_title("Help is wanted")
        assert rises(heard(anna))
        rig.board.call("")
        anna.until_title("Policy")
        rig.supervision.hold("pause", "paused by Anna")
        anna.until_title("Held")
        assert nothing_heard(anna), "a pause is somebody's wish"
        rig.supervision.hold("operator", "Ben closed the page")
        assert rises(heard(anna)), "somebody has to take over"
        rig.supervision.release("operator")

        page.click("#sound")
        rig.supervision.hold("e-stop", "emergency stop by Ben")
        anna.until_title("Emergency stop")
        assert nothing_heard(anna)
        page.reload()
        Person(page)
        assert page.inner_text("#sound") == "Sound off"
        assert anna.errors == []
