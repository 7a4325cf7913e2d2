"""An emergency stop that nobody released is on again when the program is started again."""

import json

import pytest
from fakes import SPEC, fake_workcell

from robot_rl.console.access.address import Address
from robot_rl.console.job_state import JobState
from robot_rl.env.supervision import E_STOP, PAUSE
from robot_rl.hil.operator_setup import OperatorOptions, open_operator

STOP, RELEASE = {"who": "Anna", "kind": "do", "what": "e-stop"}, {"who": "Ben", "kind": "do", "what": "release e-stop"}
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
    options = OperatorOptions(console=Address("127.0.0.1:0"))
    with open_operator(fake_workcell(), options, JobState("training", SPEC), log=log) as setup:
        found = {hold.name: hold.reason for hold in setup.supervision.holds}
        assert found.keys() == holds
        if holds:
            assert found[E_STOP] == "emergency stop by Anna, before this program was started"
