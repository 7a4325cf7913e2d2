"""Child processes: real ones, which end with us, end in time and leave their last lines."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from robot_rl.system.child_process import KEPT_LINES, ChildProcess, describe_code

STUBBORN = """
import signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
ORDERLY = """
import signal, sys, time
def end(*_):
    print("ends in order", file=sys.stderr, flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
time.sleep(60)
"""
PARENT = """
import sys, threading, time
from robot_rl.system.child_process import ChildProcess
started = []
thread = threading.Thread(target=lambda: started.append(ChildProcess([sys.executable, "-c", {code!r}])))
thread.start(); thread.join()  # the thread that starts it may end
time.sleep(0.5)
print(started[0].pid, started[0].poll(), flush=True)
time.sleep(60)
"""


def python(code, **options):
    return ChildProcess([sys.executable, "-c", code], **options)


def until(done, limit=30.0):
    end = time.monotonic() + limit
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent_however_that_ends(number):
    code = PARENT.format(code=STUBBORN)
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE)
    pid, exit_code = parent.stdout.readline().split()
    assert exit_code == "None"
    assert is_running(pid)
    parent.send_signal(number)
    parent.communicate()
    until(lambda: not is_running(pid))


def test_one_that_ends_when_requested_is_not_killed():
    lines = []
    process = python(ORDERLY, on_line=lines.append)
    until(lambda: "ready" in lines)
    assert process.end(20.0, signal.SIGINT)
    assert (process.poll(), process.describe_end()) == (0, "ended with exit code 0")
    assert lines == ["ready", "ends in order"]


def test_one_that_ignores_the_request_is_killed_after_the_grace_period():
    lines = []
    process = python(STUBBORN, on_line=lines.append)
    until(lambda: lines)
    started = time.monotonic()
    assert not process.end(0.3, signal.SIGTERM)
    assert 0.3 <= time.monotonic() - started < 10
    assert process.poll() == -signal.SIGKILL
    assert process.describe_end().startswith("was killed (SIGKILL")
    assert process.end(0.0), "ending it twice does nothing"


def test_the_end_of_its_input_can_be_the_request():
    process = python("import sys; print(sys.stdin.read() + '!', end='')", pipes=True)
    process.stdin.write(b"all of it")
    assert process.end(20.0)
    assert process.stdout.read() == b"all of it!"


def test_the_last_lines_are_kept_and_the_last_one_explains_the_end():
    code = "import sys\nfor n in range(50): print(f'line {n}', file=sys.stderr)\nraise ValueError('a bad day')"
    lines = []
    process = python(code, on_line=lines.append)
    assert process.wait(20.0) == 1
    assert process.describe_end() == "ended with exit code 1: ValueError: a bad day"
    assert len(process.last_lines) == KEPT_LINES
    assert list(process.last_lines) == lines[-KEPT_LINES:]
    assert lines[:50] == [f"line {n}" for n in range(50)]


def test_lines_go_to_our_standard_error_and_what_is_no_text_does_no_harm(capsys):
    process = python("import os; os.write(1, b'out\\n'); os.write(2, b'\\xff err')")
    assert process.wait(20.0) == 0
    assert capsys.readouterr().err == "out\n� err\n"


def test_ctrl_c_does_not_reach_it_and_it_yields_to_others():
    lines = []
    process = python(
        "import os; print(os.getpgid(0), os.getpriority(os.PRIO_PROCESS, 0))", on_line=lines.append, niceness=3
    )
    process.wait(20.0)
    group, niceness = map(int, lines[0].split())
    assert group == process.pid != os.getpgid(0)
    assert niceness == min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)


def test_it_inherits_only_the_files_that_it_is_given(tmp_path):
    with open(tmp_path / "a", "w") as given, open(tmp_path / "b", "w") as kept:
        code = f"import os\nos.fstat({given.fileno()})\ntry: os.fstat({kept.fileno()})\nexcept OSError: print('closed')"
        lines = []
        assert python(code, inherit=[given.fileno()], on_line=lines.append).wait(20.0) == 0
    assert lines == ["closed"]


def test_a_program_that_does_not_exist_is_an_error_of_the_caller():
    before = threading.active_count()
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/no/such/program"])
    until(lambda: threading.active_count() == before)


def test_a_grandchild_that_keeps_standard_error_open_holds_nobody_up():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(8)'])"
    started = time.monotonic()
    assert python(code).wait(20.0) == 0
    assert time.monotonic() - started < 7


@pytest.mark.parametrize(("code", "text"), [(0, "exit code 0"), (2, "exit code 2"), (-15, "SIGTERM")])
def test_an_exit_code_has_a_name(code, text):
    assert describe_code(code) == text
