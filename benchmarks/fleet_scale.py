"""A fleet of recorded robots: what the link and the learner's intake carry, with and without learning.

    python benchmarks/fleet_scale.py --run runs/fleet/robots/robot1 --robots 1 8 100 --seconds 20 --updates 0

Each robot replays the episodes of a recorded run at its control rate, from a store, through a real link on loopback; so
rows, encoding, sockets, threads and memory are those of a real fleet, and only the arms are missing. With `--updates 0`
nothing is learned, which shows the bound of the intake alone. A network is put between them by
`--latency 0.03 --loss 0.01 --bandwidth 1e6` (`link_model.py`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from link_model import LinkModel, Relay

from robot_rl import __version__
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.replay.percept import Percept
from robot_rl.data.schema import Episode
from robot_rl.data.store.tail import Cursor, StoreTail
from robot_rl.fleet.access import FleetAddress
from robot_rl.fleet.fleet_learner import FleetLearner
from robot_rl.fleet.intake import PARAMETERS_EVERY, Intake, ReceivedEpisode, _Assembly
from robot_rl.fleet.plan import FleetPlan, FleetRobot
from robot_rl.fleet.uplink import Uplink
from robot_rl.learn.perception import make_perception
from robot_rl.link.messages import EpisodePart, Parameters, RobotHello, decode, encode
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.run_directory import RunDirectory

TOKEN = "recorded robots of one machine"
SETTLING = 20.0
"""Time before anything is counted [s]."""


class PacedTail(StoreTail):
    """Online episodes of a store, over and over, each as soon as a robot would have played it.

    Args:
        path: The store.
        period: Time between two steps [s].
    """

    def __init__(self, path: Path, period: float) -> None:
        super().__init__(path)
        super().scan()
        recorded = [super(PacedTail, self).read(place) for place in range(len(self._files))]
        self._episodes = [one for one in recorded if not one[0].metadata.get("demonstration")]
        self._ends = np.cumsum([len(episode) * period for episode, _ in self._episodes])
        self._started = time.monotonic() - np.random.default_rng().uniform(0, self._ends[-1])
        self._before = int(self._due())

    def _due(self) -> int:
        rounds, rest = divmod(time.monotonic() - self._started, self._ends[-1])
        return int(rounds) * len(self._ends) + int(np.searchsorted(self._ends, rest))

    def scan(self) -> int:
        """Return how many episodes are played by now."""
        return self._due() - self._before

    def __len__(self) -> int:
        """Return how many episodes are played by now."""
        return self.scan()

    def read(self, place: int) -> tuple[Episode, str]:
        """Return an episode under a name of its own."""
        episode, fingerprint = self._episodes[(self._before + place) % len(self._episodes)]
        return replace(episode, episode_id=f"episode-{place:05d}"), fingerprint

    def check(self, cursor: Cursor, reader: str) -> None:
        """Accept any."""


def main() -> None:
    """Measure each number of robots, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 8, 100])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--senders", type=int, default=1, help="processes that the robots are in")
    parser.add_argument("--updates", type=int, default=0, help="updates per step; 0: none")
    parser.add_argument("--latency", type=float, default=0.0, help="of the network, one way [s]")
    parser.add_argument("--loss", type=float, default=0.0, help="share of its packets")
    parser.add_argument("--bandwidth", type=float, default=float("inf"), help="of each robot and direction [bytes/s]")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for robots in arguments.robots:
        print(_measure(arguments, robots), flush=True)


def _measure(arguments: argparse.Namespace, robots: int) -> str:
    config = RunDirectory.read_config(arguments.run)
    config = replace(config, demonstrations=0, warmup_steps=10 if arguments.updates else 10**9, env_steps=10**9)
    config = replace(config, update_to_data=max(1, arguments.updates))
    with Deployment().environment(config.task, workcell_options(config)) as env:
        spec = make_perception(env.observation_specs, config).spec
        task = env.environment_spec
    rows = max(config.replay.capacity, 2 * robots * (task.max_steps + 1))
    config = replace(config, learners=1, replay=replace(config.replay, capacity=rows))
    names = [f"robot{number}" for number in range(robots)]
    learner = FleetLearner(FleetPlan(config, {name: FleetRobot() for name in names}, {}), task, spec)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    model = LinkModel(arguments.latency, arguments.bandwidth, arguments.loss)
    relay = Relay(listener.getsockname()[1], model)
    direct = model == LinkModel()
    address = FleetAddress(f"127.0.0.1:{listener.getsockname()[1] if direct else relay.port}")
    intake = Intake(
        listener, TOKEN, dict.fromkeys(names, 1.0), {}, lambda hello: None, learner.check_episode, lambda line: None
    )
    steps, ended = 0, threading.Event()

    def serve() -> None:
        nonlocal steps
        published, published_at = 0, 0.0
        while not ended.is_set():
            received = intake.next(0.1)
            if received is None or not isinstance(received[1], ReceivedEpisode):
                continue
            learner.learn(*received, lambda logs: None)
            intake.learned(received[0])
            steps += len(received[1].steps)
            if steps - published >= 5 and time.monotonic() - published_at >= PARAMETERS_EVERY:
                published, published_at = steps, time.monotonic()
                arrays = {name: value.numpy().copy() for name, value in learner.learner.policy.policy_state().items()}
                intake.publish(Parameters(updates=learner.learner.updates, arrays=arrays))

    intake.start()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    context = multiprocessing.get_context("spawn")
    senders, pipes = [], []
    for number in range(arguments.senders):
        ours, theirs = context.Pipe()
        given = arguments.run, config, names[number :: arguments.senders], str(address), arguments.seconds, theirs
        senders.append(context.Process(target=_play, args=given))
        pipes.append(ours)
        senders[-1].start()
    for pipe in pipes:
        pipe.recv()  # all of its robots are connected
    for pipe in pipes:
        pipe.send("begin")
    time.sleep(SETTLING)  # what was played while the others were connected is sent
    before, cpu, began = steps, time.process_time(), time.monotonic()
    time.sleep(arguments.seconds)
    wall, used, learned = time.monotonic() - began, time.process_time() - cpu, steps - before
    played = [pipe.recv() for pipe in pipes]
    ended.set()
    thread.join()
    intake.close()
    for sender in senders:
        sender.join(30.0)
        sender.kill()
    relay.close()
    sets, ages = sum(one["sets"] for one in played), np.mean([one["behind"] for one in played])
    row, period = played[0]["row"], task.control_period
    policy = sum(value.numel() * value.element_size() for value in learner.learner.policy.policy_state().values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{robots} robots: {learned / wall:.0f} of {robots / period:.0f} rows/s, {row:.0f} B a row, "
        f"{row / period / 1e3:.1f} kB/s up a robot, {sets / wall / robots:.2f} parameter sets/s a robot of "
        f"{policy / 1e3:.0f} kB, behind {ages:.1f} episodes, CPU of the learner {used / wall:.2f} cores, of the robots "
        f"{sum(one['cpu'] for one in played):.2f}, memory of the learner {memory:.0f} MB, "
        f"load {os.getloadavg()[0]:.1f}; one core could take {_core_rate(played[0]['messages'], learner):.0f} rows/s"
    )


def _play(run: Path, config: TrainConfig, names: Sequence[str], where: str, seconds: float, pipe: Connection) -> None:
    """Play the part of these robots, in a process of its own; send what became of it."""
    with Deployment().environment(config.task, workcell_options(config)) as env:
        perception, task = make_perception(env.observation_specs, config), env.environment_spec
    lock, address = threading.Lock(), FleetAddress(where)

    def percepts(episode: Episode) -> list[Percept]:
        with lock:
            return list(perception.of_rows(episode.observed))

    def hello(name: str) -> Callable[[int], RobotHello]:
        settings = json.loads(json.dumps(config_to_dict(config)))  # keys of schedules as text, as messages have them
        facts = {"config": settings, "task": asdict(task), "percepts": {}}
        return lambda session: RobotHello(robot=name, session=session, version=__version__, **facts)

    tails = [PacedTail(run / "episodes", task.control_period) for _ in names]
    uplinks = [
        Uplink(address, TOKEN, hello(name), tail, percepts, lambda line: None)
        for name, tail in zip(names, tails, strict=True)
    ]
    for uplink in uplinks:
        uplink.start()
    for uplink in uplinks:
        if not uplink.wait(lambda standing: standing.connected, 120.0):
            raise SystemExit(f"a robot is not connected: {uplink.inbox.error}")
    pipe.send("ready")
    pipe.recv()
    time.sleep(SETTLING)
    cpu, began, sets, ages = time.process_time(), time.monotonic(), 0, []
    while time.monotonic() - began < seconds:
        time.sleep(0.1)
        sets += sum(uplink.inbox.pop_parameters() is not None for uplink in uplinks)
        behind = [tail.scan() - uplink.standing.learned for tail, uplink in zip(tails, uplinks, strict=True)]
        ages.append(float(np.mean(behind)))
    parts = list(uplinks[0]._parts(0))
    pipe.send(
        {
            "cpu": (time.process_time() - cpu) / seconds,
            "sets": sets,
            "behind": float(np.mean(ages)),
            "row": sum(len(encode(part)) for part in parts) / parts[0].length,
            "messages": [encode(part) for part in parts],
        }
    )
    os._exit(0)  # its threads may wait for a learner that has ended


def _core_rate(messages: Sequence[bytes], learner: FleetLearner) -> float:
    """Return how many rows a second of processor time decodes, checks and remembers, with what learning is due."""
    name, steps, started = next(iter(learner.cursors)), 0, time.process_time()
    while time.process_time() - started < 2.0:
        assembly, received = _Assembly(learner.cursors[name]), None
        for message in messages:
            part = decode(message)
            assert isinstance(part, EpisodePart)
            received = assembly.add(replace(part, place=learner.cursors[name].episodes))
        assert received is not None
        learner.check_episode(name, received)
        learner.learn(name, received, lambda logs: None)
        steps += len(received.steps)
    return steps / (time.process_time() - started)


if __name__ == "__main__":
    main()
