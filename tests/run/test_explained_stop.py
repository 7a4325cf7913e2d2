"""A run that ends because the arm stopped names the command that continues it."""

from pathlib import Path

import pytest

from robot_rl.errors import ArmStoppedError
from robot_rl.run.resume import explain_resume

pytestmark = pytest.mark.wall_clock


def test_an_arm_that_stopped_names_the_cause_and_how_to_go_on(tmp_path):
    run = tmp_path / "run"
    with (
        pytest.raises(
            ArmStoppedError, match=r"^protective stop; what was recorded is kept; .*--robot r\.yaml --resume"
        ),
        explain_resume(Path(run), "robot-rl train --robot r.yaml --resume --out"),
    ):
        raise ArmStoppedError("protective stop")
