"""A controller that lets a second program in is claimed: the second one is told which process has it."""

import subprocess
import sys

import pytest

from robot_rl.arm.industrial.controller_claim import ControllerClaim
from robot_rl.errors import ArmStoppedError

HOLD = """
from robot_rl.arm.industrial.controller_claim import ControllerClaim
claim = ControllerClaim("127.77.0.1", what="Franka")
print("held", flush=True)
input()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="abstract names of sockets are those of Linux")
def test_a_second_program_is_told_which_process_has_it_until_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        named = rf"the Franka at 127.77.0.1 is in use by another program \(process {other.pid}\); end that"
        with pytest.raises(ArmStoppedError, match=named):
            ControllerClaim("127.77.0.1", what="Franka")
        ControllerClaim("127.77.0.2", what="Franka").close()
        other.kill()
    claim = ControllerClaim("127.77.0.1", what="Franka")
    with pytest.raises(ArmStoppedError, match=r"\(this one\)"):
        ControllerClaim("127.77.0.1", what="Franka")
    claim.close()
