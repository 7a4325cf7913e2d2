import io
import json
import os
import pty
import subprocess
import sys

import pytest

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.system.progress import Progress, format_duration

SCRIPT = """
import json
from robot_rl.system.progress import Progress
with Progress(100, "peg_insert") as progress:
    progress.update(50, success=0.5, intervention_rate=0.125)
    print(json.dumps({"answer": 1}))
    progress.log("checkpoint [saved]")
    progress.update(100, success=0.95)
"""


def make(total=1000, **options):
    stream, clock = io.StringIO(), FakeClock(start=7 * NS_PER_S)
    return Progress(total, "train", stream=stream, clock=clock, **options), stream, clock


def advance(clock, seconds):
    clock.sleep_until(clock.now() + round(seconds * NS_PER_S))


def test_plain_lines_come_every_ten_seconds_and_at_the_end():
    progress, stream, clock = make()
    with progress:
        for step in range(1, 251):
            advance(clock, 0.1)
            progress.update(step, success=0.5, intervention_rate=0.2, q_mean=0.25, q_bound=1.0, updates_per_s=40.0)
    lines = stream.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1/1000", "101/1000", "201/1000", "250/1000"]
    assert lines[-1] == (
        "train: 250/1000 steps (25%), 10 steps/s, success 50%, operator 20%, Q 0.25, Q bound 1.00, 40 updates/s, "
        "1 min 15 s left"
    )


def test_the_rate_is_that_of_the_last_half_minute():
    progress, _, clock = make()
    for step in range(100):
        advance(clock, 1.0)
        progress.update(step)
    for step in range(100, 500):
        advance(clock, 0.1)
        progress.update(step)
    assert progress.rate == pytest.approx(10.0)


def test_a_resumed_run_does_not_count_what_was_done_before():
    progress, stream, clock = make(start=900)
    advance(clock, 10)
    progress.update(950)
    assert progress.rate == pytest.approx(5.0)
    assert "10 s left" in stream.getvalue()


def test_fields_stay_until_taken_away_and_any_name_will_do():
    progress, stream, _ = make(interval=0)
    progress.update(1, lateral_error_mm=0.41, phase="demonstrations")
    progress.update(2, phase=None)
    first, second = stream.getvalue().splitlines()
    assert first.endswith("lateral error mm 0.41, phase demonstrations")
    assert second.endswith("lateral error mm 0.41")


def test_log_writes_the_line_as_it_is():
    progress, stream, _ = make()
    progress.log("wrote runs/a [bold] 3/4")
    assert stream.getvalue() == "wrote runs/a [bold] 3/4\n"


def test_a_signal_handler_may_log_while_something_is_being_written():
    class Interrupted(io.StringIO):
        """Its first write is interrupted by a signal whose handler logs."""

        def write(self, text):
            if not self.tell():
                super().write("<")
                progress.log("stopping")
                return super().write(text + ">")
            return super().write(text)

    stream = Interrupted()
    progress = Progress(2, "train", stream=stream, clock=FakeClock())
    progress.update(1)
    assert stream.getvalue() == "<train: 1/2 steps (50%)\n>stopping\n"


def test_no_work_at_all_is_done():
    progress, stream, _ = make(total=0)
    with progress:
        pass
    assert stream.getvalue() == "train: 0/0 steps (100%)\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")]
)
def test_durations(seconds, text):
    assert format_duration(seconds) == text


def test_a_pipe_gets_the_answer_and_nothing_else():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"answer": 1}
    assert "checkpoint [saved]" in done.stderr
    assert "\x1b" not in done.stderr


def test_on_a_terminal_there_is_a_bar_and_the_pipe_still_gets_the_answer():
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=child, text=True, env=environment
    )
    answer, _ = process.communicate(timeout=30)
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert process.returncode == 0
    assert json.loads(answer) == {"answer": 1}
    assert "━" in shown
    assert "100/100 steps (100%)" in shown
    assert "success 95%, operator 12%" in shown
    assert "checkpoint [saved]" in shown
    assert shown.count("\x1b[?25h") == 1  # the cursor is back
