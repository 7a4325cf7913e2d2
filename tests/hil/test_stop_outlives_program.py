"""An emergency stop that nobody released is on again when the program is started again."""

import json

import pytest
from fakes import SPEC, fake_workcell

from robot_rl.console.access.address import Address
from robot_rl.console.job_state import JobState
from robot_rl.env.supervision import E_STOP, PAUSE
from robot_rl.hil.operator_setup import OperatorOptions, open_operator
from robot_rl.run.directory.human_effort import HumanEffort
from robot_rl.system.atomic_file import append_row

STOP, RELEASE = {"who": "Anna", "kind": "do", "what": "e-stop"}, {"who": "Ben", "kind": "do", "what": "release e-stop"}
OPTIONS = OperatorOptions(console=Address("127.0.0.1:0"))
NOTE, RESUME = {"who": "Anna", "kind": "note", "text": "a loud noise"}, {"who": "Ben", "kind": "do", "what": "resume"}


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        (None, set()),
        ([NOTE], set()),
        ([STOP, NOTE], {E_STOP, PAUSE}),
        ([STOP, RELEASE, RESUME], set()),
        ([STOP, RELEASE, STOP], {E_STOP, PAUSE}),
    ],
)
def test_it_is_on_until_somebody_releases_it(tmp_path, rows, holds):
    log = tmp_path / "operator.jsonl"
    if rows is not None:
        log.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with open_operator(fake_workcell(), OPTIONS, JobState("training", SPEC), log=log) as setup:
        found = {hold.name: hold.reason for hold in setup.supervision.holds}
        assert found.keys() == holds
        if holds:
            assert found[E_STOP] == "emergency stop by Anna, before this program was started"


def test_a_record_with_half_a_line_is_read(tmp_path):
    log = tmp_path / "operator.jsonl"
    log.write_text(f'{json.dumps(STOP)}\n{{"who": "Be', encoding="utf-8")
    with open_operator(fake_workcell(), OPTIONS, JobState("training", SPEC), log=log) as setup:
        assert E_STOP in {hold.name for hold in setup.supervision.holds}
    append_row(log, RELEASE)
    with open_operator(fake_workcell(), OPTIONS, JobState("training", SPEC), log=log) as setup:
        assert not setup.supervision.holds
    assert HumanEffort(SPEC.control_period, log).figures["presses"] == 2
