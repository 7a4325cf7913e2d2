"""The learner in a real process of its own, fed with steps that say which they are."""

import contextlib
import dataclasses
import os
import signal
import time

import numpy as np
import pytest
import torch
from running import one_thread

from robot_rl.clock import FakeClock, SystemClock, stands_still
from robot_rl.config.components import ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.schema import EpisodeBuilder, Source, Step
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.errors import DivergedError, LinkError
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import Perception
from robot_rl.link.remote_learner import EXPLORATION, RemoteLearner
from robot_rl.spec import ArraySpec

BOX = Workspace(low=(-0.1, -0.1, -0.1), high=(0.1, 0.1, 0.1), yaw=0.1, tilt=0.1)
TASK = TaskSpec("tagged", "count", 10, 0.1, BOX, action_axes=("x", "y")).environment
SPECS = {"state/tag": ArraySpec((2,), scale=1000.0)}
CONFIG = TrainConfig(
    seed=3,
    demonstrations=2,
    warmup_steps=10,
    update_to_data=3,
    processes=2,
    sac=SACConfig(hidden_sizes=(8, 8)),
    replay=ReplayConfig(capacity=500, batch_size=8),
)
EPISODE = 10


def observation(number):
    return {"state/tag": np.array([number, -number], np.float32), "images/front": np.full((2, 2, 3), number, np.uint8)}


class Numbered:
    """A potential that is another one at every observation."""

    encoder, camera, size, limit = "none", "front", 2, 10.0

    def encode(self, frame):
        return torch.tensor([frame[0, 0, 0] / 100])

    def begin(self):
        seen = []

        def so_far(features):
            seen.append(float(features[0]))
            return sum(seen) / len(seen) ** 2

        return so_far


def step(number, **changes):
    """The online step of that number; every tenth ends its episode, by success and time-out in turn."""
    index, last = number % EPISODE, number % EPISODE == EPISODE - 1
    success = number // EPISODE % 2 == 0
    action = np.array([np.sin(number), np.cos(number)], np.float32)
    fields = {
        "observation": observation(number),
        "action": action,
        "action_policy": action,
        "source": Source.SCRIPT if index < 3 else Source.POLICY,
        "reward": float(last and success),
        "reward_source": "task",
        "terminated": last and success,
        "truncated": last and not success,
        "stamp_obs": number,
        "stamp_action": number,
        "episode_id": str(number // EPISODE),
        "index": index,
    }
    return Step(**{**fields, **changes})


def demonstration(number):
    builder = EpisodeBuilder(str(number))
    for t in range(number * EPISODE, (number + 1) * EPISODE):
        builder.add(step(t))
    return builder.finish(observation((number + 1) * EPISODE), 0)


def take_steps(learner, start, stop):
    """The robot side: tells the learner of steps and lets it catch up after each; returns the logs."""
    logs = []
    for number in range(start, stop):
        if number % EPISODE == 0:
            learner.on_start(str(number // EPISODE), observation(number))
        now = step(number)
        learner.on_step(now, observation(number + 1))
        if now.terminated or now.truncated:
            learner.on_end(None, None)
        logs.append(learner.catch_up())
    return [log for log in logs if log is not None]


def demonstrate(learner):
    for number in range(CONFIG.demonstrations):
        learner.add_demonstration(demonstration(number))


def start(config=CONFIG, *, wait_between_steps=True, potential=None):
    perception = Perception(SPECS, potential=potential)
    return RemoteLearner(TASK, perception, config, wait_between_steps=wait_between_steps)


def flat(state):
    """Leaves of a state, arrays as bytes, by their path."""
    leaves = {}

    def walk(value, path):
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, f"{path}/{key}")
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                walk(item, f"{path}/{index}")
        elif isinstance(value, np.ndarray | torch.Tensor):
            leaves[path] = np.asarray(value).tobytes()
        else:
            leaves[path] = repr(value)

    walk(state, "")
    return leaves


def assert_same(remote_state, local_state):
    one, other = flat({k: v for k, v in remote_state.items() if k != EXPLORATION}), flat(local_state)
    assert one.keys() == other.keys()
    assert [path for path in one if one[path] != other[path]] == []


@pytest.fixture(name="one_thread")
def _one_thread():
    """The learner's process computes with one thread; bit for bit the same needs the same here."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def trained():
    """A learner that was told of 57 steps; its state and policy then, and the logs."""
    with start() as learner:
        first = learner.policy.policy_state()
        demonstrate(learner)
        logs = take_steps(learner, 0, 57)
        state = learner.state_dict()
        yield {
            "state": state,
            "first": first,
            "logs": logs,
            "policy": learner.policy.policy_state(),
            "updates": learner.updates,
            "update_to_data": learner.update_to_data,
            "lead": learner.lead,
            "value": learner.value,
        }


def test_it_learns_what_a_learner_in_this_process_does_from_the_same_steps_bit_for_bit(trained, one_thread):
    local = LocalLearner(TASK, Perception(SPECS), CONFIG)
    demonstrate(local)
    take_steps(local, 0, 57)
    assert_same(trained["state"], local.state_dict())
    assert trained["value"] == local.value, "what the critics expect is reported, too"


@pytest.mark.slow
def test_potentials_arrive_and_both_learn_the_same_of_them(trained, one_thread):
    with start(potential=Numbered()) as remote:
        local = LocalLearner(TASK, Perception(SPECS, potential=Numbered()), CONFIG)
        for learner in (remote, local):
            demonstrate(learner)
            take_steps(learner, 0, 27)
        state = remote.state_dict()
    assert_same(state, local.state_dict())
    assert state["online"]["potential"][:3] == pytest.approx([0.0, 0.01 / 4, 0.03 / 9])
    assert state["demos"]["potential"][11:14] == pytest.approx([0.1, 0.21 / 4, 0.33 / 9])
    assert state["updates"] == 3 * (27 - CONFIG.warmup_steps)


@pytest.mark.slow
def test_offline_it_learns_the_same_too_also_from_a_state_in_the_middle(one_thread):
    local = LocalLearner(TASK, Perception(SPECS), CONFIG)
    with start() as remote:
        for learner in (remote, local):
            demonstrate(learner)
            logs = learner.pretrain(7)
            assert learner.offline_updates == 7
            assert logs.keys() >= {"value_loss", "critic_loss", "actor_loss"}
        middle = remote.state_dict()
        for learner in (remote, local):
            learner.pretrain(5)
            take_steps(learner, 0, 17)
        assert_same(remote.state_dict(), local.state_dict())
        assert remote.policy.policy_state().keys() == local.policy.policy_state().keys()
        assert_same({"policy": remote.policy.policy_state()}, {"policy": local.policy.policy_state()})
        remote.load_state_dict(middle)
        assert remote.offline_updates == 7
        remote.pretrain(5)
        take_steps(remote, 0, 17)
        assert_same(remote.state_dict(), local.state_dict())


def test_every_step_arrives_once_and_in_order(trained):
    online = trained["state"]["online"]
    is_step = np.ones(len(online["state"]), bool)
    is_step[np.cumsum(online["episode_rows"]) - 1] = False
    np.testing.assert_array_equal(online["state"][is_step, 0] * 1000, np.arange(57))
    np.testing.assert_allclose(online["action"][is_step, 0], np.sin(np.arange(57)), rtol=1e-6)
    assert trained["state"]["env_steps"] == 57


def test_what_the_critics_expect_is_of_the_present_episode_or_not_known(one_thread):
    here = LocalLearner(TASK, Perception(SPECS), CONFIG)
    with start() as there:
        for learner in (there, here):
            demonstrate(learner)
            take_steps(learner, 0, 2 * EPISODE)
        before = there.value
        for learner in (there, here):
            learner.on_start("2", observation(2 * EPISODE))
        until = time.monotonic() + 30
        while there.value is None and time.monotonic() < until:
            time.sleep(0.01)
        assert there.value == pytest.approx(here.value) != before


def test_the_update_to_data_ratio_holds(trained):
    assert trained["updates"] == 3 * (57 - CONFIG.warmup_steps)
    assert trained["update_to_data"] == 3.0
    assert trained["lead"] == 0


def test_the_actor_starts_and_ends_with_the_policy_of_the_learner(trained, one_thread):
    learned = trained["state"]["algorithm"]["modules"]["policy"]
    assert all(torch.equal(trained["policy"][name], learned[name]) for name in learned)
    fresh = LocalLearner(TASK, Perception(SPECS), CONFIG).policy.policy_state()
    assert all(torch.equal(trained["first"][name], fresh[name]) for name in fresh)
    assert any(not torch.equal(trained["first"][name], learned[name]) for name in learned)


def test_a_run_goes_on_in_either_number_of_processes(trained, one_thread):
    local = LocalLearner(TASK, Perception(SPECS), CONFIG)
    local.load_state_dict(trained["state"])
    logs = take_steps(local, 57, 150)
    with start() as remote:
        remote.load_state_dict(trained["state"])
        assert (remote.updates, remote.lead) == (3 * 47, 0)
        assert torch.equal(remote.policy.generator.get_state(), trained["state"][EXPLORATION])
        remote_logs = take_steps(remote, 57, 150)
        assert_same(remote.state_dict(), local.state_dict())
        remote_logs += [log for log in [remote.catch_up()] if log]
        (log,), (remote_log,) = logs, remote_logs  # the 100th call since the start
        assert {name: remote_log[name] for name in log} == log
        assert 0 <= remote_log["actor_waited"] <= 1
        assert 0 <= remote_log["policy_lag"] <= 3 * (CONFIG.max_lead_steps + 5)
        assert remote.catch_up() is None
        remote.load_state_dict(local.state_dict())  # of a run in one process
        assert_same(remote.state_dict(), local.state_dict())


def test_the_actor_waits_between_steps_when_it_is_too_far_ahead():
    leads = []
    with start(dataclasses.replace(CONFIG, update_to_data=20, max_lead_steps=4)) as learner:
        demonstrate(learner)
        for number in range(60):
            take_steps(learner, number, number + 1)
            leads.append(learner.lead)
    assert 0 < max(leads) <= 4


def test_a_simulated_clock_stands_still_and_a_robots_does_not():
    assert stands_still(FakeClock())
    assert not stands_still(SystemClock())


@pytest.mark.slow
def test_on_a_robot_it_waits_only_between_episodes():
    busy = dataclasses.replace(CONFIG, update_to_data=400, warmup_steps=0, max_lead_steps=0)
    with start(busy, wait_between_steps=False) as learner:
        demonstrate(learner)
        started = time.monotonic()
        take_steps(learner, 0, EPISODE - 1)
        control = time.monotonic() - started
        lead = learner.lead
        take_steps(learner, EPISODE - 1, EPISODE)
        total = time.monotonic() - started
        assert learner.lead == 0
        assert learner.update_to_data == 400
    assert lead > 0, "the learner kept up; the test needs more work for it"
    assert control < total / 2


def test_a_learner_that_diverges_says_so():
    diverging = dataclasses.replace(CONFIG, sac=SACConfig(hidden_sizes=(8, 8), learning_rate=1e30))
    with start(diverging) as learner, pytest.raises(DivergedError, match=r"left the finite numbers after .* lower sac"):
        demonstrate(learner)
        take_steps(learner, 0, 200)


def pid_of(learner):
    return learner.peer.pid


def is_running(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_killed_learner_is_noticed_at_once_and_leaves_nothing_behind():
    with start() as learner:
        demonstrate(learner)
        take_steps(learner, 0, 20)
        os.kill(pid_of(learner), signal.SIGKILL)
        killed = time.monotonic()
        with pytest.raises(LinkError, match=r"was killed \(SIGKILL.*; the run continues from its last checkpoint"):
            take_steps(learner, 20, 10_000)
        with pytest.raises(LinkError, match="was killed"):
            learner.state_dict()
    assert time.monotonic() - killed < 5
    assert not is_running(pid_of(learner))


def test_the_learner_follows_the_actor_and_not_signals():
    with start() as learner:
        assert os.getpgid(pid_of(learner)) != os.getpgid(0)  # Ctrl-C in a terminal does not reach it
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pid_of(learner), number)
        demonstrate(learner)
        take_steps(learner, 0, 15)
        assert learner.state_dict()["env_steps"] == 15
    assert learner.peer.exit_code in (0, -signal.SIGKILL)  # killed if it is slow to end, on a busy machine
    learner.close()  # twice is fine
    with pytest.raises(LinkError, match=r"ended with exit code 0|was killed"):
        learner.catch_up()


@pytest.mark.slow
def test_a_learner_that_hangs_does_not_keep_the_actor():
    with start() as learner:
        os.kill(pid_of(learner), signal.SIGSTOP)
        closing = time.monotonic()
    assert time.monotonic() - closing < 10
    assert not is_running(pid_of(learner))
