"""What is measured at each step of the running episode, and what labels said, reaches the page as it comes."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from browser import Person, chromium
from fakes import SPEC, fake_workcell
from pages import Rig

from robot_rl.console.access.address import Address
from robot_rl.console.job_state import JobState
from robot_rl.data.schema import CLASSIFIER_PROBABILITY
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import Outcome
from robot_rl.hil.operator_setup import OperatorOptions, open_operator


class Rising:
    """A judge whose probability rises by a tenth at each step."""

    def begin(self):
        self.steps = 0

    def judge(self, outcome, observation, spec):
        self.steps += 1
        return replace(outcome, metrics={**outcome.metrics, CLASSIFIER_PROBABILITY: self.steps / 10})


def test_what_a_classifier_finds_is_shown_at_each_step_and_forgotten_with_the_episode():
    board = JobState("training", SPEC)
    cell = replace(fake_workcell(), judges=(Rising(),))
    with contextlib.ExitStack() as stack:
        setup = stack.enter_context(open_operator(cell, OperatorOptions(console=Address("127.0.0.1:0")), board))
        env = RobotEnv(setup.supervision.workcell(None))
        for episode in range(2):
            env.reset(seed=episode)
            assert board.state()["episode"]["measures"] == {}
            for step in range(1, 4):
                env.step(np.zeros(SPEC.action_size, np.float32))
                assert board.state()["episode"]["measures"] == {"classifier": step / 10}


def test_the_board_changes_no_outcome():
    outcome = Outcome(success=True, reward=1.0, metrics={CLASSIFIER_PROBABILITY: 0.5})
    assert JobState("training", SPEC).judge(outcome, {}, SPEC) is outcome


@pytest.mark.slow
def test_the_page_draws_them_and_the_labels(tmp_path):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0) as rig:
        anna = Person(page, rig.url)
        anna.until_title("Policy")
        assert page.is_hidden("#measured")
        assert page.locator("#curves [data-name=Labels]").count() == 0
        for value in (0.2, 0.4, 0.87):
            rig.board.measure("classifier", value)
            rig.board.metric("label", 10, {"value": value, "success": value > 0.5})
            rig.board.metric("episode", 10, {"success": True, CLASSIFIER_PROBABILITY: value})
        shown = "document.querySelector('#measures .curve b')?.textContent === '87 %'"
        anna.until("the newest is shown", shown)
        anna.until_moved(5)
        drawing = "document.querySelector('#measures canvas').getContext('2d')"
        ink = f"{drawing}.getImageData(0, 0, 300, 50).data.some(Boolean)"
        anna.until("a curve is drawn", ink)
        anna.until("the mean of the labels", "document.querySelector('[data-name=Labels] b')?.textContent === '49 %'")
        assert page.inner_text("[data-name='Classifier at the end'] b") == "49 %"
        assert anna.errors == []
