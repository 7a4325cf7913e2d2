"""What the learner's process makes of messages, and the actor of the answers; both in this process, over a socket."""

import dataclasses
import socket
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from robot_rl.config.components import ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.reward import RewardConfig
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.errors import ConfigError, DataError, DivergedError, LinkError
from robot_rl.learn.learner import Learner
from robot_rl.link.handshake import Agreement
from robot_rl.link.inbox import Inbox
from robot_rl.link.learner_process import LearnerServer
from robot_rl.link.messages import (
    Demonstration,
    EpisodeLabel,
    EpisodeRewards,
    Failure,
    LearnerReady,
    Logs,
    Parameters,
    Start,
    StateRequest,
    StepTaken,
    Stop,
    UpdateProgress,
)
from robot_rl.link.socket import Connection, PeerGoneError
from robot_rl.link.state_transfer import CheckpointAssembler, cut

BOX = Workspace(low=(-0.1, -0.1, -0.1), high=(0.1, 0.1, 0.1), yaw=0.1, tilt=0.1)
TASK = TaskSpec("t", "do it", 10, 0.1, BOX, action_axes=("x", "y")).environment
CONFIG = TrainConfig(
    demonstrations=1,
    warmup_steps=0,
    update_to_data=2,
    sac=SACConfig(hidden_sizes=(4,)),
    replay=ReplayConfig(capacity=50, batch_size=4),
)
AGREEMENT = Agreement(TASK, PerceptSpec(3), CONFIG)
ROW, ACTION = np.ones(3, np.float32), np.zeros(2, np.float32)
SEEN = Percept(ROW)
DEMONSTRATION = Demonstration(
    percepts=[SEEN] * 3, steps=[Transition(ACTION, 0.0, terminated, False, 1) for terminated in (False, True)]
)


def step(number, **changes):
    return StepTaken(number=number, step=Transition(ACTION, 0.0, False, False, 0)._replace(**changes), percept=SEEN)


def serve(*messages):
    """All answers to these messages, from a learner that then runs until it is told to stop."""
    ours, theirs = socket.socketpair()
    actor, learner = Connection(ours, "learner"), Connection(theirs, "actor")
    try:
        for message in messages:
            actor.send(message)
        actor.send(Stop())
        LearnerServer(learner).run()
        learner.hang_up()
        answers = []
        with pytest.raises(PeerGoneError):
            while True:
                answers.append(actor.receive())
        return answers
    finally:
        actor.close()
        learner.close()


def test_it_says_what_it_does():
    hello = AGREEMENT.hello()
    answers = serve(
        hello, DEMONSTRATION, Start(percept=SEEN, episode_id="7"), *(step(n) for n in range(7)), StateRequest()
    )
    kinds = [type(answer).__name__ for answer in answers]
    assert kinds == [
        *("Parameters", "UpdateProgress", "LearnerReady"),
        *["UpdateProgress"] * 5,  # the first of a begun episode
        *("Parameters", "UpdateProgress"),  # after the fifth call
        *["UpdateProgress"] * 2,
        *("Parameters", "StatePart"),
    ]
    progress = [(a.env_steps, a.updates, a.update_to_data) for a in answers if isinstance(a, UpdateProgress)]
    assert progress == [(0, 0, 0.0), *((n, 2 * n, 2.0 if n else 0.0) for n in range(8))]
    assert [a.episode_id for a in answers if isinstance(a, UpdateProgress)] == ["", *["7"] * 8]
    assert [a.updates for a in answers if isinstance(a, Parameters)] == [0, 10, 14]
    assert answers[2].fingerprint == AGREEMENT.fingerprint
    state = CheckpointAssembler().add(answers[-1])
    assert (state["env_steps"], state["demos"]["episode_rows"].tolist()) == (7, [3])
    again = serve(hello, *cut(state), StateRequest())
    assert [type(answer).__name__ for answer in again[3:6]] == ["Parameters", "UpdateProgress", "LearnerReady"]
    assert again[4].env_steps == 7
    assert again[-1].content == answers[-1].content


@pytest.mark.parametrize(
    ("error", "words", "messages"),
    [
        (LinkError, "the first message is Start, expected ActorHello", [Start(percept=SEEN)]),
        (LinkError, "a learner does not accept the message ActorHello", [AGREEMENT.hello(), AGREEMENT.hello()]),
        (LinkError, "a learner does not accept the message Logs", [AGREEMENT.hello(), Logs(values={})]),
        (LinkError, "step 1 arrived after 0 steps; one is lost", [AGREEMENT.hello(), Start(percept=SEEN), step(1)]),
        (
            LinkError,
            "step 0 arrived after 1 steps; .* twice",
            [AGREEMENT.hello(), Start(percept=SEEN), step(0), step(0)],
        ),
        (DataError, "append without begin", [AGREEMENT.hello(), step(0)]),
        (DataError, r"shape \(2,\), expected \(3,\)", [AGREEMENT.hello(), Start(percept=Percept(ACTION))]),
        (DataError, "reward is nan", [AGREEMENT.hello(), Start(percept=SEEN), step(0, reward=float("nan"))]),
        (
            DataError,
            "a demonstration has 2 observations and 2 steps",
            [AGREEMENT.hello(), dataclasses.replace(DEMONSTRATION, percepts=[SEEN] * 2)],
        ),
        (
            DataError,
            r"shape \(2,\), expected \(3,\)",
            [AGREEMENT.hello(), dataclasses.replace(DEMONSTRATION, percepts=[Percept(ACTION)] * 3)],
        ),
        (
            ConfigError,
            r"return_range \(1.0, 1.0\) is empty",
            [AGREEMENT._replace(task=dataclasses.replace(TASK, return_range=(1.0, 1.0))).hello()],
        ),
    ],
)
def test_it_refuses_what_makes_no_sense(error, words, messages):
    with pytest.raises(error, match=words):
        serve(*messages)


@pytest.mark.parametrize("error", [DataError, DivergedError, ConfigError])
def test_what_ended_the_learner_keeps_its_name(error):
    with pytest.raises(error, match="a sentence"):
        Inbox().put(Failure(error=error.__name__, text="a sentence"))


def test_an_unknown_error_of_the_learner_is_a_link_error():
    with pytest.raises(LinkError, match="a sentence"):
        Inbox().put(Failure(error="SystemExit", text="a sentence"))


def test_an_actor_takes_only_what_a_learner_says():
    with pytest.raises(LinkError, match="an actor does not accept the message Stop"):
        Inbox().put(Stop())


def test_the_newest_parameters_are_taken_once_and_logs_in_order():
    inbox = Inbox()
    for updates in (1, 2):
        inbox.put(Parameters(updates=updates, arrays={}))
        inbox.put(Logs(values={"updates": float(updates)}))
    assert inbox.pop_parameters().updates == 2
    assert inbox.pop_parameters() is None
    assert [inbox.pop_logs(), inbox.pop_logs(), inbox.pop_logs()] == [{"updates": 1.0}, {"updates": 2.0}, None]


def test_waiting_ends_by_the_answer_by_an_error_or_by_silence():
    inbox = Inbox(silence_limit=1)
    started = time.monotonic()
    assert inbox.wait_for_ready() is None
    assert 0.5 < time.monotonic() - started < 10
    patient = Inbox()
    threading.Timer(0.1, patient.put, [LearnerReady(fingerprint="x")]).start()
    assert patient.wait_for_ready().fingerprint == "x"
    threading.Timer(0.1, patient.fail, [LinkError("over")]).start()
    assert patient.wait_for_state() is None
    patient.fail(LinkError("later"))
    assert str(patient.error) == "over"


def test_what_has_no_label_yet_can_count_as_a_failure():
    settings = replace(CONFIG, reward=RewardConfig(kind="labels", unlabelled="failure"))
    hello = Agreement(TASK, PerceptSpec(3), settings).hello()
    end = step(1, truncated=True, undecided=True)
    answers = serve(hello, DEMONSTRATION, Start(percept=SEEN, episode_id="one"), step(0), end, StateRequest())
    known = CheckpointAssembler().add(answers[-1])["online"]
    assert (known["undecided"].tolist(), known["reward"].tolist()) == ([], [0, 0, 0])


def test_learned_rewards_replace_those_of_an_episode_and_of_a_demonstration():
    """A step is worth (1 - gamma) c, in this process and in that one."""
    end = step(1, truncated=True, undecided=True)
    demo = replace(DEMONSTRATION, episode_id="shown")
    rewards = [
        EpisodeRewards(episode_id="one", closeness=np.array([0.25, 0.75], np.float32)),
        EpisodeRewards(episode_id="shown", closeness=np.array([0.5, 1.0], np.float32)),
        EpisodeRewards(episode_id="forgotten", closeness=np.ones(9, np.float32)),
    ]
    asked = (AGREEMENT.hello(), demo, Start(percept=SEEN, episode_id="one"), step(0), end, *rewards, StateRequest())
    known = CheckpointAssembler().add(serve(*asked)[-1])
    unit = 1.0 - Learner(*AGREEMENT).algorithm.discount
    assert known["online"]["reward"].tolist() == pytest.approx([0.25 * unit, 0.75 * unit, 0.0])
    assert not len(known["online"]["undecided"])
    assert known["demos"]["reward"].tolist() == pytest.approx([0.5 * unit, unit, 0.0])
    assert known["demos"]["terminated"].tolist() == [False, True, False]


def test_what_a_label_says_later_is_learned_from_then_on():
    end = step(1, truncated=True, undecided=True)
    episode = (AGREEMENT.hello(), DEMONSTRATION, Start(percept=SEEN, episode_id="one"), step(0), end)
    waiting = CheckpointAssembler().add(serve(*episode, StateRequest())[-1])["online"]
    assert (waiting["undecided"].tolist(), waiting["reward"].tolist()) == (["one"], [0, 0, 0])
    told = CheckpointAssembler().add(serve(*episode, EpisodeLabel(episode_id="one", success=True), StateRequest())[-1])[
        "online"
    ]
    assert (told["undecided"].tolist(), told["reward"].tolist()) == ([], [0, 1, 0])
    assert told["terminated"].tolist() == [False, True, False]
