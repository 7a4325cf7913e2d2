"""The page's texts fit who reads them: who leads, who looks on, and everybody under a stop."""

import time

import pytest
from browser import Person, chromium
from pages import Rig

from robot_rl.env.supervision import EVALUATING

pytestmark = pytest.mark.slow


def row(number, success, demonstration):
    return {
        **{"id": f"episode-{number}", "success": success, "failure": None, "cut": None, "steps": 5, "seconds": 0.5},
        **{"led": 0, "takeovers": 0, "force_peak": None, "judge": "task", "overruled": None, "label": None},
        "demonstration": demonstration,
    }


def test_only_who_took_over_is_asked_why(tmp_path):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0) as rig:
        anna, ben = Person(page, rig.url), Person(page.context.new_page(), rig.url, "Ben")
        anna.take_control()
        with anna.holding("w"):
            anna.until_title("You lead")
            ben.until_title("Anna leads")
        page.wait_for_selector("#reasons:not([hidden])")
        ben.until_title("Policy")
        time.sleep(0.3)
        assert ben.page.is_hidden("#reasons")
        assert "Anna" in ben.page.inner_text("#hint"), "who looks on is told who leads, not how"
        assert anna.errors + ben.errors == []


@pytest.mark.parametrize("text", ["Recording. Success ends it.", "Learning."])
def test_nothing_invites_to_lead_under_an_emergency_stop(tmp_path, text):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0) as rig:
        anna, ben = Person(page, rig.url), Person(page.context.new_page(), rig.url, "Ben")
        rig.board.phase("recording", text, ())
        anna.take_control()
        anna.press("Escape")
        for one in (anna, ben):
            one.until_title("Emergency stop")
            time.sleep(0.3)
            seen = one.page.inner_text("main")
            for invitation in ("lead", "move the tool", text):
                assert invitation not in seen
        assert "release the stop" in page.inner_text("#phase")
        assert "Anna can release the stop" in ben.page.inner_text("#phase")
        page.click("#estop")
        anna.until_title("Held")
        anna.until("what to do", "document.querySelector('#phase').textContent.includes('Resume')")


@pytest.mark.parametrize("judges", [(), ("success", "failure")])
def test_in_an_evaluation_a_person_judges_where_that_is_wanted_and_never_leads(tmp_path, judges):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0) as rig:
        anna = Person(page, rig.url)
        rig.board.phase(EVALUATING, "On held-out resets.", judges)
        expected = ",".join(f"do-{name}" for name in (*judges, "pause"))
        anna.until(
            "its buttons", f"[...document.querySelectorAll('#actions button')].map(b => b.id).join() === '{expected}'"
        )
        assert ("Take control to judge" in page.inner_text("#hint")) == bool(judges)
        anna.take_control()
        anna.until("who leads", "document.querySelector('#hint').textContent.includes('nobody takes over')")
        assert anna.errors == []


@pytest.mark.parametrize(
    ("rows", "tally"),
    [
        ([row(0, True, True), row(1, True, False), row(2, False, False)], "1 of 2 successful, 1 demonstration"),
        ([row(0, True, True), row(1, False, True)], "2 demonstrations, 1 successful"),
        ([row(0, True, False)], "1 of 1 successful"),
    ],
)
def test_demonstrations_are_no_successes_of_the_policy(tmp_path, rows, tally):
    rig = Rig(tmp_path, heartbeat=5.0)
    rig.supervision.hold("pause", "so that no other episode comes")
    with chromium() as page, rig:
        anna = Person(page, rig.url)
        for one in rows:
            rig.board.ended(one)
        anna.until("the list", f"document.querySelectorAll('#episodes .episode').length >= {len(rows)}")
        assert page.inner_text("#tally") == tally
