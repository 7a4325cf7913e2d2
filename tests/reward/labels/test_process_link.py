"""The labeller in a real process of its own: it labels what is recorded, and ends with its training."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from model_server import ModelServer, says_success
from pydantic import TypeAdapter
from scenes import stamped_episode, stamped_store

from robot_rl.config.labelling import BudgetConfig, EndpointConfig, FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate_new import query_identity
from robot_rl.reward.labels.process_link import LabellerLink
from robot_rl.reward.labels.process_messages import Labelled, Order, RoundDone
from robot_rl.reward.vlm.make_backend import make_backend

TRAINING = """
import sys, time
from pathlib import Path
from pydantic import TypeAdapter
from robot_rl.reward.labels.process_link import LabellerLink
from robot_rl.reward.labels.process_messages import Order
with LabellerLink(TypeAdapter(Order).validate_json(sys.argv[1]), print) as link:
    link.begin(Path(sys.argv[2]))
    print("begun", flush=True)
    time.sleep(100)
"""


def order(server, **budget):
    endpoint = EndpointConfig(url=server.url, key_variable="NO_KEY", concurrency=2, attempts=2, backoff_s=0.01)
    config = LabelConfig(endpoint=endpoint, frames=FramesConfig(count=2, camera="front"), budget=BudgetConfig(**budget))
    backend = make_backend(config, Budget(config.budget))
    try:
        return Order("labels", config, "push it", query_identity(backend, config, "push it", "front"))
    finally:
        backend.close()


def until(done, limit=60.0):
    end = time.monotonic() + limit
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def labels_of(path):
    with LabelStore(path) as labels:
        return list(labels.labels("labels"))


def children_of(pid):
    text = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in text for child in file.read_text().split()]


def test_episodes_are_labelled_as_they_are_recorded_and_a_closed_link_leaves_no_process(tmp_path):
    path = stamped_store(tmp_path / "s", 3)
    found = []
    with ModelServer(says_success) as server, LabellerLink(order(server), print) as link:
        link.begin(path)
        until(lambda: found.extend(link.collect()) or sum(isinstance(one, Labelled) for one in found) == 3)
        with EpisodeStore.open(path, write=True) as store:
            store.append(stamped_episode(3, 12))
        link.on_recorded()
        until(lambda: found.extend(link.collect()) or sum(isinstance(one, Labelled) for one in found) == 4)
        (process,) = [pid for pid in children_of(os.getpid()) if b"labels.process" in _command(pid)]
    assert not Path(f"/proc/{process}").exists()
    *first, last = [one.episode_id for one in found if isinstance(one, Labelled)]
    assert sorted(first) == [f"episode-{n}" for n in range(3)]  # queried at the same time, answered in any order
    assert last == "episode-3"
    assert all(not one.left for one in found if isinstance(one, RoundDone))
    assert (link.starts, link.ended) == (1, "")


def test_a_killed_training_ends_its_labeller_and_answers_under_way_are_kept(tmp_path):
    path = stamped_store(tmp_path / "s", 6)
    with ModelServer(says_success) as server:
        server.hold.clear()
        text = TypeAdapter(Order).dump_json(order(server)).decode()
        training = subprocess.Popen([sys.executable, "-c", TRAINING, text, str(path)], stdout=subprocess.PIPE)
        until(lambda: len(server.requests) == 2)  # as many as may be under way
        (labeller,) = children_of(training.pid)
        training.send_signal(signal.SIGKILL)
        training.communicate()
        time.sleep(0.5)  # the labeller notices before it is answered
        server.hold.set()
        until(lambda: not Path(f"/proc/{labeller}").exists() or b"labels.process" not in _command(labeller))
        assert len(server.requests) == 2
    assert len(labels_of(path)) == 2


def test_a_spent_budget_ends_it_for_good(tmp_path):
    path, notes = stamped_store(tmp_path / "s", 4), []
    with ModelServer(says_success) as server, LabellerLink(order(server, calls=2), notes.append) as link:
        link.begin(path)
        until(lambda: link.ended)
        assert "calls: 2 of 2 used" in link.ended
        assert link.starts == 1
    assert len(labels_of(path)) == 2
    assert any("no more labels" in note for note in notes)


def test_a_labeller_that_cannot_start_explains_why(tmp_path):
    server = ModelServer(says_success)
    settings = order(server)
    server.close()
    with pytest.raises(ConfigError, match=r"the labeller cannot start: .*no answer"), LabellerLink(settings, print):
        pass


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
