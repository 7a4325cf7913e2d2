"""A person is called by a script of the user's, within a budget, and a script that fails is named."""

import subprocess
import sys
import threading
import time

import pytest

from robot_rl.calling.caller import Caller
from robot_rl.errors import ConfigError


def script(tmp_path, text):
    path = tmp_path / "call me"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"'{path}' --to lab"


def call(caller, message):
    """Call, and wait for the script, for which the caller does not wait."""
    made = caller.call(message)
    for thread in threading.enumerate():
        if thread.name == "call":
            thread.join()
    return made


def test_the_script_gets_the_message_whole_and_no_more_often_than_the_budget_allows(tmp_path):
    lines, heard, clock = [], tmp_path / "heard", [0.0]
    caller = Caller(script(tmp_path, f'echo "$1 $2: $3" >> {heard}'), 2, lines.append, now=lambda: clock[0])
    made = []
    for clock[0] in (0.0, 10.0, 20.0, 3600.0, 3605.0, 3610.0):
        made.append(call(caller, f"it's {clock[0]:.0f}; $HOME"))
    assert made == [True, True, False, True, False, True]
    assert heard.read_text().splitlines() == [f"--to lab: it's {now}; $HOME" for now in (0, 10, 3600, 3610)]
    assert [line.startswith("not called, as there were 2 calls") for line in lines] == [not one for one in made]


def test_what_acts_does_not_wait_for_a_slow_script(tmp_path):
    started = time.monotonic()
    assert Caller(script(tmp_path, "sleep 2"), 1, lambda line: None).call("help")
    assert time.monotonic() - started < 1.0


def test_a_script_that_fails_is_named_and_one_that_is_not_there_refused(tmp_path):
    lines = []
    assert call(Caller(script(tmp_path, "echo no network >&2; exit 3"), 1, lines.append), "help")
    assert "did not call, it ended with 3: no network" in lines[-1]
    assert call(Caller(script(tmp_path, r"printf 'kaputt \303\n' >&2; exit 3"), 1, lines.append), "help")
    assert "did not call, it ended with 3: kaputt \ufffd" in lines[-1]
    with pytest.raises(ConfigError, match="there is no command 'nowhere'"):
        Caller("nowhere --now", 1, lines.append)
    with pytest.raises(ConfigError, match="is no command line"):
        Caller("say 'it", 1, lines.append)


def test_a_script_does_not_read_the_keys_of_the_operator(tmp_path):
    program = f"""
from robot_rl.calling.caller import Caller
Caller({script(tmp_path, f"cat > {tmp_path}/read")!r}, 1, print).call("help")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], input="keys", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "help\n", "")
    assert (tmp_path / "read").read_text() == ""
