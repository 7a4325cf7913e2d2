"""A model in another interpreter, without our packages: the program of docs/add/labeller.md, and programs that fail."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from running import robot_rl
from scenes import stamped_store

from robot_rl.config.labelling import BudgetConfig, LabelConfig, ProcessConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import BudgetSpentError, ConfigError, UnansweredError
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.make_backend import make_backend

PAGE = Path(__file__).resolve().parents[3] / "docs" / "add" / "labeller.md"
BRIGHTNESS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
HELLO = """import json, sys, time
print('{"model": "m", "revision": "1"}', flush=True)
def query():
    line = sys.stdin.buffer.readline()
    head = json.loads(line) if line else sys.exit()
    n, h, w, c = head["shape"]
    return head, sys.stdin.buffer.read(n * h * w * c)
"""


def command(tmp_path, text):
    """The program in an interpreter that sees neither our packages nor any other."""
    file = tmp_path / "serve.py"
    file.write_text(text)
    return (sys.executable, "-I", "-S", str(file))


def backend(tmp_path, text, *, kind="progress", timeout_s=5.0, budget=None):
    process = ProcessConfig(command(tmp_path, text), timeout_s)
    return make_backend(LabelConfig(backend="process", kind=kind, process=process), Budget(budget or BudgetConfig()))


def query(*levels, kind=QueryKind.PROGRESS):
    frames = np.stack([np.full((4, 6, 3), level, np.uint8) for level in levels])
    return Query(kind, "push it", (Clip("e", "f", "front", tuple(range(len(levels))), frames),))


def test_the_program_of_the_page_labels_every_frame(tmp_path):
    model = backend(tmp_path, BRIGHTNESS)
    assert model.identity == {"backend": "process", "model": "brightness", "revision": "1"}
    for levels in ((0, 51, 255), (102, 153)):
        assert model.answer(query(*levels)).values == pytest.approx([level / 255 for level in levels])
    model.close()
    with pytest.raises(UnansweredError, match="closed"):
        model.answer(query(0, 1))


@pytest.mark.slow
def test_by_the_command_line_a_store_gets_its_labels(tmp_path):
    path = stamped_store(tmp_path / "s", 2)
    program = ",".join(command(tmp_path, BRIGHTNESS))
    flags = ("--kind", "progress", "--set", "backend=process", "--set", f"process.command=[{program}]")
    done = robot_rl("label", "run", path, *flags, "--set", "task=push it", "--set", "frames.count=4")
    assert done.returncode == 0, done.stderr
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        for label in labels.labels("progress"):
            (clip,) = label.subject
            frames = store.read(clip["episode_id"]).observations["images/front"][clip["rows"]]
            assert label.answer.values == pytest.approx(frames.mean(axis=(1, 2, 3)) / 255, abs=1e-6)
        assert labels.identity("progress")["model"] == "brightness"


@pytest.mark.parametrize(
    ("line", "status", "why"),
    [
        ('{"values": [0.5]}', Status.UNPARSABLE, "1 values, expected 2"),
        ('{"values": [0.5, 1.5]}', Status.UNPARSABLE, r"not in \[0, 1\]"),
        ('{"values": [0.5, NaN]}', Status.UNPARSABLE, "not finite"),
        ('{"values": [true, false]}', Status.UNPARSABLE, "expected a line"),
        ("progress: 50 %", Status.UNPARSABLE, "expected a line"),
        ("[" * 5000, Status.UNPARSABLE, "expected a line"),
        ('{"unsure": "dark"}', Status.UNSURE, "dark"),
    ],
)
def test_what_is_no_answer_has_no_values(tmp_path, line, status, why):
    model = backend(tmp_path, f"{HELLO}\nwhile query():\n    print({line!r}, flush=True)")
    answer = model.answer(query(1, 2))
    model.close()
    assert (answer.status, answer.values) == (status, ())
    assert re.search(why, answer.details["why"])


def test_a_program_that_dies_or_hangs_is_started_again_for_the_next_query(tmp_path):
    """It ends at frames of 1, hangs at frames of 2, and answers otherwise."""
    text = f"""{HELLO}
while True:
    head, content = query()
    if content[0] == 1:
        sys.exit("out of memory")
    if content[0] == 2:
        time.sleep(60)
    print(json.dumps({{"values": [0.5] * head["shape"][0]}}), flush=True)"""
    model = backend(tmp_path, text, timeout_s=2.0)
    with pytest.raises(UnansweredError, match="out of memory"):
        model.answer(query(1, 1))
    assert model.answer(query(0, 0)).values == (0.5, 0.5)
    with pytest.raises(UnansweredError, match="no answer within 2 s"):
        model.answer(query(2, 2))
    assert model.answer(query(0, 0)).values == (0.5, 0.5)
    model.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import sys\nsys.exit('no GPU')", "no GPU"),
        ("print('ready', flush=True)\ninput()", "its first line must be JSON"),
    ],
)
def test_a_program_that_does_not_get_ready_is_a_wrong_setting(tmp_path, text, problem):
    with pytest.raises(ConfigError, match=rf"process\.command: .*{problem}"):
        backend(tmp_path, text)


def test_what_it_cannot_do_and_a_spent_budget(tmp_path):
    with pytest.raises(ConfigError, match=r"process\.command: no-such-program cannot be started"):
        make_backend(
            LabelConfig(backend="process", process=ProcessConfig(("no-such-program",))), Budget(BudgetConfig())
        )
    for settings in ({"kind": "preference"}, {"kind": "success"}):
        with pytest.raises(ConfigError, match=r"needs process\.command"):
            make_backend(LabelConfig(backend="process", **settings), Budget(BudgetConfig()))
    model = backend(tmp_path, BRIGHTNESS, budget=BudgetConfig(calls=1))
    model.answer(query(0, 1))
    with pytest.raises(BudgetSpentError, match="calls: 1 of 1"):
        model.answer(query(0, 1))
    model.close()
