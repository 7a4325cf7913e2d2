"""A person at this machine's own devices is heard also while the control loop waits for an answer."""

import os
import pty
import threading
from dataclasses import replace

import numpy as np
import pytest
from fakes import fake_workcell

from robot_rl.env.task import WorkcellOptions
from robot_rl.hil.local_operator import LocalOperator
from robot_rl.hil.operator_setup import OperatorOptions

FORWARD = np.array([0.5, 0.0, 0.0], np.float32)


class AlwaysSuccess:
    """A judge who sees a success in every step, and then has the person answer."""

    def __init__(self, answer):
        self._answer = answer

    def begin(self):
        pass

    def judge(self, outcome, observation, spec):
        self._answer.start()
        return replace(outcome, success=True, reward=1.0, judge="classifier")


@pytest.fixture
def typed(monkeypatch):
    """What types at the terminal of this process."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        yield lambda text: os.write(master, text.encode())
    os.close(master)


@pytest.mark.parametrize(("key", "success"), [("n", False), ("y", True)])
def test_a_key_answers_the_question_whether_a_classifiers_success_is_one(tmp_path, typed, key, success):
    answer = threading.Timer(0.3, typed, (key,))
    cell = replace(fake_workcell(), judges=(AlwaysSuccess(answer),))
    person = LocalOperator(OperatorOptions(devices=("keyboard",)), tmp_path, 10)
    with person.environment(cell, WorkcellOptions(), interventions=True, overrule_s=20.0) as env:
        env.reset(seed=0)
        recorded = env.step(FORWARD)[4]["step"]
    assert (recorded.success, recorded.recorded.reward_source) == (success, "operator")
