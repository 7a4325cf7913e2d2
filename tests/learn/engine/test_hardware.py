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
def test_tensors_that_are_made_afterwards_lie_where_large_pages_are_asked_for():
    """Whether the kernel then has them depends on what else runs there: it gives none that it would have to clear."""
    code = """
import torch
from robot_rl.learn.engine.hardware import keep_freed_memory
assert keep_freed_memory()
kept = [torch.ones(64, 1024) for _ in range(64)]  # 16 MB, each too small for a large page of its own
advised, inside = [], range(0)
for line in open("/proc/self/smaps"):
    first = line.split()[0]
    if "-" in first and not first.endswith(":"):
        inside = range(*(int(end, 16) for end in first.split("-")))
    elif first == "VmFlags:" and "hg" in line.split():
        advised.append(inside)
print(sum(any(tensor.data_ptr() in inside for inside in advised) for tensor in kept))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 63, "all but one on the border"
