"""The real labeller node beside a store that grows, with a real server."""

import json
import threading

import pytest
from model_server import ModelServer, reply, says_success
from scenes import stamped_episode
from waiting import eventually

from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError
from robot_rl.reward.label_store import LabelStore
from ros_nodes.nodes.labeller_node import LabellerNode


@pytest.fixture
def labeller(graph, tmp_path):
    """Makes the node and has it serve, until the test ends."""
    ended = threading.Event()

    def make(url, *settings):
        given = ["task=push it", "frames.count=3", f"endpoint.url={url}", *settings]
        node = graph.add(LabellerNode, run=str(tmp_path / "run"), settings=given, pause=0.1)
        helpers.append(graph.thread(lambda: node.serve(ended)))
        return node

    helpers = []
    yield make
    ended.set()
    for helper in helpers:
        helper.join(30)


def rewards_everything(_):
    return reply(json.dumps({"seen": "", "verdict": "success", "confidence": 95}))


def test_episodes_are_labelled_as_they_are_recorded_and_labels_that_go_wrong_are_named(labeller, tmp_path):
    with ModelServer(rewards_everything) as server:
        node = labeller(server.url)
        assert node.health()[1] == f"waits for {tmp_path / 'run'}"
        with EpisodeStore.create(tmp_path / "run" / "episodes", {"task": "push"}) as store:
            assert eventually(lambda: node.health()[1] == f"labels {tmp_path / 'run' / 'episodes'}")
            for number in range(8):
                store.append(stamped_episode(number, 3, success=False))
            assert eventually(lambda: node.facts()["labelled"] == 8)
        assert node.facts()["alarms"] == 1
        assert "the labeller calls failures a success" in node.health()[1]
        assert len(server.requests) == 8
    with LabelStore(tmp_path / "run" / "episodes") as labels:
        assert len(list(labels.labels("success"))) == 8


def test_a_spent_budget_ends_the_asking_and_nothing_else(labeller, tmp_path):
    with ModelServer(says_success) as server:
        node = labeller(server.url, "budget.calls=2", "endpoint.concurrency=1")
        with EpisodeStore.create(tmp_path / "run" / "episodes", {"task": "push"}) as store:
            for number in range(4):
                store.append(stamped_episode(number, 3))
            assert eventually(lambda: "the budget does not reach" in node.health()[1])
        assert len(server.requests) == 2


def test_a_server_that_is_away_is_named_and_asked_again(labeller, tmp_path):
    node = labeller("http://127.0.0.1:9/v1")
    EpisodeStore.create(tmp_path / "run" / "episodes", {"task": "push"}).close()
    assert eventually(lambda: any("start the server" in text and n > 1 for text, n in node.problems.items()))


def test_without_a_run_it_says_what_to_set(graph):
    with pytest.raises(ConfigError, match="Set `run` to the run directory"):
        graph.add(LabellerNode)
