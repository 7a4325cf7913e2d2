"""The page of all robots in a real browser, for who looks and who listens."""

import pytest
from browser import Person, chromium
from overviews import Served, two_robots
from pages import Rig, eventually
from test_page_audit import audit

pytestmark = pytest.mark.slow


class Onlooker(Person):
    """A person at the overview."""

    def __init__(self, page, url, there=2):
        self.page, self.errors = page, []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(url)
        page.fill("#door-name", "Berta")
        page.click("#door button")
        self.until("they are there", f"document.querySelectorAll('.robot:not(.away)').length === {there}")

    def said(self, name):
        return self.page.inner_text(f".robot:has(h2:text-matches('^{name}:')) .who")


@pytest.mark.parametrize("size", [(390, 844), (1440, 900)], ids=["telephone", "laptop"])
def test_all_are_in_sight_and_escape_stops_them(tmp_path, size):
    with chromium(size) as page, two_robots(tmp_path, filmed=True) as (served, first, second):
        berta = Onlooker(page, served.url)
        berta.until("both are seen", "document.querySelectorAll('.robot img:not([hidden])').length === 2")
        berta.until("one plays", "[...document.querySelectorAll('.who')].some((e) => e.textContent === 'Policy')")
        assert audit(page) == []
        assert page.get_attribute(".robot a", "href") == f"{first.url}/"
        berta.press("Escape")
        berta.until("both are held", "document.querySelectorAll('.robot[data-control=held]').length === 2")
        assert (berta.said("arm1"), berta.said("arm2")) == ("Emergency stop",) * 2
        assert "e-stop" in first.holds and "e-stop" in second.holds
        assert page.inner_text("#summary") == "2 of 2 connected \u00b7 held: arm1, arm2"
        assert audit(page) == []
        assert berta.errors == []


def test_a_robot_that_cannot_be_stopped_from_here_is_named(tmp_path):
    with chromium() as page, Rig(tmp_path) as rig, Served({"arm1": rig.url, "arm2": "http://127.0.0.1:9"}) as served:
        berta = Onlooker(page, served.url, there=1)
        assert page.inner_text(".robot.away .detail") == "no connection: Connection refused"
        page.click("#stop")
        berta.until("who is named", "document.querySelector('#missing').textContent.includes('arm2. Go there')")
        assert "e-stop" in rig.holds
        assert audit(page) == []
        page.on("dialog", lambda dialog: dialog.accept())  # it asks first
        page.click("#give-up")
        berta.until("nobody is", "document.querySelector('#missing').hidden")
        assert berta.errors == []


def test_a_page_that_hears_nothing_says_so_and_sends_the_stop_when_it_does(tmp_path):
    with chromium() as page, Rig(tmp_path) as rig:
        with Served({"arm1": rig.url}) as served:
            berta = Onlooker(page, served.url, there=1)
            port = served.overview.address.port
        berta.until("it says so", "document.querySelector('#summary').textContent.startsWith('No connection')")
        berta.press("Escape")
        berta.until("the stop waits", "document.querySelector('#missing').textContent.includes('not delivered')")
        assert "e-stop" not in rig.holds
        with Served({"arm1": rig.url}, port=port):
            assert eventually(lambda: "e-stop" in rig.holds)
        assert berta.errors == []
