"""Where the answer of a command goes is the caller's: a file on a full disk, a closed one, or a reader that is gone."""

import subprocess
import sys


def test_where_the_answer_goes_may_be_full_closed_or_gone():
    program = f"{sys.executable} -m robot_rl completion fish"
    for where, code, said in (
        (">/dev/full", 1, "robot-rl: all is done, but the answer cannot be written: No space left on device; send it"),
        (">&-", 0, ""),
        ("| exit; exit ${PIPESTATUS[0]}", 141, ""),
    ):
        done = subprocess.run(["bash", "-c", f"{program} {where}"], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == bool(said)
