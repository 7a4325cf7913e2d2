"""Requests and answers by lines: either side may wait for the other, and whoever does not answer is ended and named."""

import sys
import time

import pytest

from robot_rl.system.line_process import LineProcess, NoAnswerError

ECHO = "import sys\nfor line in sys.stdin:\n    print(len(line), flush=True)"


@pytest.fixture
def start():
    started = []

    def start(program):
        started.append(LineProcess([sys.executable, "-c", program]))
        return started[-1]

    yield start
    for process in started:
        process.end(0.0)


def test_each_request_has_its_answer_also_one_larger_than_a_pipe(start):
    process = start(ECHO)
    for size in (0, 10, 3_000_000, 1):
        assert process.exchange(b"x" * size + b"\n", 10.0) == f"{size + 1}\n".encode()


def test_a_line_that_comes_by_itself_and_lines_that_come_at_once_are_read_one_by_one(start):
    process = start("print('one\\ntwo', flush=True); input(); print('three', flush=True); input()")
    assert process.exchange(b"", 10.0) == b"one\n"
    assert process.exchange(b"", 10.0) == b"two\n"
    assert process.exchange(b"go\n", 10.0) == b"three\n"


@pytest.mark.parametrize(
    ("program", "content", "end"),
    [
        ("import time; time.sleep(60)", b"x" * 1_000_000 + b"\n", "still runs"),  # it reads nothing
        ("input(); print('half', end='', flush=True); input()", b"\n", "still runs"),
        ("raise SystemExit(3)", b"", "ended with exit code 3"),
        ("print('half', end='')", b"", "ended with exit code 0"),
        ("print('x' * 3_000_000)", b"", "still runs"),
    ],
)
def test_a_program_that_does_not_answer_is_ended_and_named(start, program, content, end):
    process, begin = start(program), time.monotonic()
    with pytest.raises(NoAnswerError, match=f"no answer.*it {end}"):
        process.exchange(content, 0.5)
    assert time.monotonic() - begin < 5.0
    with pytest.raises(NoAnswerError, match="the program has ended"):
        process.exchange(b"\n", 0.5)
