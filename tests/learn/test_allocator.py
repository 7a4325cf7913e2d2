"""Updates take their memory from what earlier ones freed."""

import resource

import pytest
import torch

from robot_rl.config.components import EngineConfig
from robot_rl.learn.allocator import keep_freed_memory
from robot_rl.learn.bench import CASES
from robot_rl.learn.engine import Engine

CALLS = 4


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
