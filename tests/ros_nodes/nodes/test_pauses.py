"""Each node of a training in real time is stopped for more than 3 s; the graph is whole again within 10 s ."""

import subprocess
import sys
from pathlib import Path

import pytest
from ros_nodes_graph import DOMAIN
from running import environment

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "pauses.py"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_graph_is_whole_again_within_10_s_of_the_pause_of_any_node(tmp_path):
    lengths = ["--pauses", "1", "--shortest", "3.1", "--longest", "4.0"]
    command = [sys.executable, str(SCRIPT), "--out", str(tmp_path / "run"), *lengths, "--domain", str(DOMAIN)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert "0 of 6 took longer than 10 s" in done.stdout, done.stdout + done.stderr
