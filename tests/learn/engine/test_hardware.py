"""Updates take their memory from what earlier ones freed."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from robot_rl.bench.learner import CASES
from robot_rl.config.components import EngineConfig
from robot_rl.learn.engine.engine import Engine
from robot_rl.learn.engine.hardware import keep_freed_memory

CALLS = 4
LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def pages():
    """Pages that the system has given this process, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library here cannot be told to keep memory: not glibc")
def test_an_update_gets_no_pages_from_the_system():
    torch.set_num_threads(1)
    work = CASES["pixels"]
    engine, data = Engine(work.learner(), EngineConfig()), work.minibatches()
    for _ in range(8):
        engine.update(data)
    before = pages()
    for _ in range(CALLS):
        engine.update(data)
    assert (pages() - before) / CALLS < 200, "as it comes, glibc makes it some thousands"


@pytest.mark.skipif(
    not LARGE_PAGES.exists() or "[never]" in LARGE_PAGES.read_text(),
    reason="this kernel gives no large pages to those that ask for them",
)
def test_tensors_that_are_made_afterwards_lie_on_large_pages():
    code = """
import re, torch
from robot_rl.learn.engine.hardware import keep_freed_memory
assert keep_freed_memory()
kept = [torch.ones(64, 1024) for _ in range(64)]  # 16 MB, each too small for a large page of its own
told = open("/proc/self/smaps_rollup").read()
print(re.search(r"AnonHugePages: *([0-9]+) kB", told)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 8_000, "at least half of it"
