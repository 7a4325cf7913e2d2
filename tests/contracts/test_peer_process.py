"""A peer that dies is named by the test that it fails, with its last words."""

import pytest
from peer_process import PeerProcess

pytestmark = pytest.mark.wall_clock


def test_a_peer_that_dies_is_quoted_with_its_exit_code(tmp_path):
    program = tmp_path / "peer.py"
    program.write_text(
        "import sys\nprint('ready', flush=True)\nprint(input())\nsys.stdout.flush()\nsys.exit(f'no more {input()}')\n"
    )
    peer = PeerProcess(program)
    assert peer.tell("done") == "done"
    for call in (lambda: peer.tell("words"), lambda: peer.tell("again"), peer.end):
        with pytest.raises(AssertionError, match=r"peer\.py has ended with 1: no more words"):
            call()
